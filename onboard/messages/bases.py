"""Messages about bases and their hypernetworks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from onboard.messages.message import Message

BASES: Final[Mapping[str, Message]] = {
    "bare-backbone": Message(
        "{name} is a bare backbone, not a base: it has no hypernetwork and no task embeddings yet.",
        "Make a base first: onboard base train --help",
    ),
    "base-backbone-unreadable": Message(
        "The backbone of {base} cannot be read: {reason}", "Make the base again, or restore it from a backup."
    ),
    "base-config-unreadable": Message(
        "{config} cannot be read: {reason}", "Make the base again, or restore it from a backup."
    ),
    "base-embedding-missing": Message(
        "{file} has no embedding of {task}.", "Make the base again, or restore it from a backup."
    ),
    "base-file-changed": Message(
        "{path} is not the file that {names} names.", "Make the base again, or restore it from a backup."
    ),
    "base-file-missing": Message("Base {name} has no {missing}.", "Make the base again, or restore it from a backup."),
    "base-file-not-installed": Message(
        "{path} is not the file that was installed.", "Install Onboard again: pip install --force-reinstall onboard"
    ),
    "base-file-unreadable": Message(
        "{path} cannot be read: {reason}", "Make the base again, or restore it from a backup."
    ),
    "base-files-changed": Message(
        "The files of base {base} changed.", "Make the base again, or restore it from a backup."
    ),
    "base-files-missing": Message(
        "The files of base {record} ({base:.19}…) are not on this machine.",
        "Set ONBOARD_BASE to the folder of the base.",
    ),
    "base-fingerprints-unreadable": Message(
        "{path} contains no fingerprints: {reason}", "Make the base again, or restore it from a backup."
    ),
    "base-folder-forbidden": Message("{target} cannot be written.", "Copy the folder of the base, and use the copy."),
    "base-folder-not-writable": Message("{target} cannot be written: {reason}.", "Free some space."),
    "base-folder-occupied": Message(
        "{target} contains other files than those of base {digest:.19}….", "Choose a new folder with --output."
    ),
    "base-forbidden": Message(
        "The base {folder} may not be read: {forbidden}.", "Let this user read it: chmod -R a+rX {folder}"
    ),
    "base-format-unknown": Message(
        "Base {name} has format {format}; this version reads format {known}.", "Upgrade Onboard: pip install -U onboard"
    ),
    "base-json-incomplete": Message(
        "{file} lacks a fact: {reason}.", "Make the base again, or restore it from a backup."
    ),
    "base-json-not-object": Message(
        "{file} does not contain a JSON object.", "Make the base again, or restore it from a backup."
    ),
    "base-json-unreadable": Message(
        "{file} cannot be read: {reason}", "Make the base again, or restore it from a backup."
    ),
    "base-not-loadable": Message(
        "The base {base} in {folder} cannot be loaded: {reason}", "Make the base again, or restore it from a backup."
    ),
    "base-part-fixed": Message(
        "{name} is a part of the base {base} and cannot be replaced.", "Make another base with other sources."
    ),
    "base-received-differs": Message(
        "The files that were received are not those of base {digest:.19}….", "Fetch it again."
    ),
    "base-tokens-unreadable": Message(
        "{path} cannot be read: {reason}", "Make the base again, or restore it from a backup."
    ),
    "base-unreadable": Message(
        "The base {folder} cannot be read: {reason}.", "Make the base again, or restore it from a backup."
    ),
    "checkpoint-fingerprints-unreadable": Message(
        "{path} contains no fingerprints of these tasks: {reason}", "Remove it."
    ),
    "checkpoint-label-words-unusable": Message("The label words of {task} cannot be used: {reason}", "{remedy}"),
    "checkpoint-task-name-invalid": Message(
        "The checkpoint's task {name!r} does not have a valid task name.",
        "{advice} Rename the tensor task_embedding_controller.task_to_embeddings.{name}.",
    ),
    "config-section-unknown": Message("config.json has a section {own_section!r} that no export wrote.", "Remove it."),
    "export-folder-forbidden": Message(
        "{output} cannot be written: {reason}.", "Choose a folder that you can write to with --output."
    ),
    "export-folder-not-empty": Message("The folder {folder} is not empty.", "Choose a new folder with --output."),
    "export-not-writable": Message(
        "{output} cannot be written: {reason}", "Free some space, or name another folder with --output."
    ),
    "hub-tokenizer-unavailable": Message(
        "The tokenizer {source} cannot be loaded from the hub: {reason}",
        "Check the name and the network, or pass a folder with --tokenizer.",
    ),
    "hypernetwork-collected": Message(
        "Hypernetwork version {version} was deleted by gc because nothing needed it any more.",
        "Use a later version; list them with: onboard hypernetwork list",
    ),
    "hypernetwork-collected-needed": Message(
        "Hypernetwork version {version} was deleted by gc because nothing needed it any more.",
        "Restore a backup from before it was deleted.",
    ),
    "hypernetwork-version-missing": Message(
        "Base {name} has no hypernetwork version {version} here.", "List the versions with: onboard hypernetwork list"
    ),
    "label-word-unknown-to-tokenizer": Message(
        "The tokenizer does not know the label word {word!r} of {task}.",
        "Pass the words that it was trained with, and their tokenizer.",
    ),
    "label-words-incomplete": Message(
        "{path} has no label words for {missing}.",
        'Add them, for example: {{"sst2": ["negative", "positive"], "stsb": {{"low": 0, "high": 5}}}}',
    ),
    "label-words-missing": Message(
        "There is no file {path}.",
        (
            'Write the tasks\' label words into one: {{"sst2": ["negative", "positive"], "stsb": {{"low": 0, '
            '"high": 5}}}}'
        ),
    ),
    "label-words-not-json": Message(
        "{path} is not readable as JSON: {reason}",
        'For example: {{"sst2": ["negative", "positive"], "stsb": {{"low": 0, "high": 5}}}}',
    ),
    "label-words-not-object": Message(
        "{path} does not contain a JSON object with the names of the tasks.",
        'For example: {{"sst2": ["negative", "positive"], "stsb": {{"low": 0, "high": 5}}}}',
    ),
    "label-words-of-unknown-task": Message(
        "{path} names {unknown}, and the checkpoint has no such task.", "Its tasks: {present}."
    ),
    "label-words-unusable": Message(
        "The label words of {task} cannot be used: {reason}.",
        'For example: {{"sst2": ["negative", "positive"], "stsb": {{"low": 0, "high": 5}}}}',
    ),
    "lessons-of-other-backbone": Message(
        "{path} belongs to backbone {pinned:.19}…, not to {present:.19}….",
        "Create it again: onboard base lessons --help",
    ),
    "lessons-unreadable": Message(
        "{path} contains no lessons: {reason}", "Create it again: onboard base lessons --help"
    ),
    "prior-tasks-changed": Message(
        "Another task was published or deleted while the prior was refitted.", "Refit it again: onboard prior refit"
    ),
    "tokenizer-too-large": Message(
        "The tokenizer has {tokens} tokens, the checkpoint's T5 only {known}.",
        "Pass the tokenizer that the T5 was trained with: --tokenizer FOLDER",
    ),
    "torch-without-cuda": Message(
        "There is no device cuda:{index}: this torch ({version}) is built without CUDA.",
        "Install torch with CUDA, or set ONBOARD_DEVICE=cpu.",
    ),
    "unknown-base": Message("There is no base {base!r}.", "List them with: onboard base list"),
    "unknown-base-file": Message(
        "Base {base} does not have such a file.", "List its files with: onboard base show {base}"
    ),
    "unknown-cuda-device": Message(
        "There is no device cuda:{index}: this process sees {seen}.",
        "Choose another --device (or ONBOARD_DEVICE); check nvidia-smi and CUDA_VISIBLE_DEVICES.",
    ),
    "version-of-other-base": Message(
        "{version} belongs to base {pinned:.19}…, ONBOARD_BASE is {base} ({base_digest:.19}…).",
        "Set ONBOARD_BASE to the base that the version was trained on.",
    ),
}
