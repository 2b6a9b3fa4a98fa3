"""The stages of a base, in order, each skipped when its result stands in the work folder."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.numpy import load_file as load_arrays
from safetensors.numpy import save_file as save_arrays
from torch import nn

from onboard.errors import InputError
from onboard.model.encoding import TextEncoder
from onboard.model.engine import Engine
from onboard.model.hypernetwork import Hypernetwork
from onboard.pretrain import assemble, curriculum, distill, multitask, sentences, topics
from onboard.pretrain.recipe import Recipe
from onboard.pretrain.stage import Say, run_stage
from onboard.pretrain.teacher import SIZE, Teacher
from onboard.pretrain.tokenizer import train_tokenizer

PAIR_SEPARATOR = "|"


@dataclass(frozen=True)
class Ingredients:
    """Where a base is made from and where to.

    Args:
        recipe: every number.
        sources: folder of source folders.
        corpus: plain-text files.
        work: checkpoints; give the same folder again to resume.
        say: progress, a line at a time.
    """

    recipe: Recipe
    sources: Path
    corpus: Sequence[Path]
    work: Path
    say: Say


def load_texts(made_from: Ingredients) -> list[str]:
    """Texts to distil on, from the work folder or anew."""
    path = made_from.work / "texts.json"
    if not path.is_file():
        counts = made_from.recipe.sentences
        short, long = sentences.corpus_texts(
            made_from.corpus, counts.from_corpus, counts.paragraphs, made_from.recipe.seed
        )
        texts = [*sentences.source_texts(made_from.sources), *short, *long]
        made_from.work.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(texts), encoding="utf-8")
        made_from.say(f"texts: {len(texts)}, of which {len(short)} sentences and {len(long)} passages of the corpus")
    loaded: list[str] = json.loads(path.read_text(encoding="utf-8"))
    return loaded


def load_tokenizer(made_from: Ingredients, texts: Sequence[str]) -> Any:
    """The base's tokenizer, from the work folder or trained.

    Raises:
        InputError: the texts are too few for so many pieces.
    """
    from transformers import AutoTokenizer

    folder = made_from.work / "tokenizer"
    if not (folder / "tokenizer.json").is_file():
        train_tokenizer(texts, made_from.recipe.backbone.vocabulary_size, folder)
        made_from.say(f"tokenizer: {made_from.recipe.backbone.vocabulary_size} pieces")
    tokenizer: object = AutoTokenizer.from_pretrained(folder)
    pieces, wanted = len(tokenizer), made_from.recipe.backbone.vocabulary_size  # type: ignore[arg-type]  # no stubs
    if pieces != wanted:
        raise InputError(
            f"the tokenizer in {folder} has {pieces} pieces, the recipe asks for {wanted}",
            f"backbone.vocabulary_size = {pieces}, or more text, and another --work",
        )
    return tokenizer


def load_teaching(
    made_from: Ingredients, texts: Sequence[str], tokenizer: Any
) -> tuple[np.ndarray, topics.Topics, torch.Tensor]:
    """Teacher's vectors of the texts, topics, and initial token vectors; from the work folder or computed."""
    path = made_from.work / "teaching.safetensors"
    names = made_from.work / "topics.json"
    if not names.is_file():
        _teach(made_from, texts, tokenizer, path, names)
    arrays = load_arrays(path)
    stored = json.loads(names.read_text(encoding="utf-8"))
    levels = tuple(
        topics.TopicLevel(tuple(level), arrays[f"assignment.{index}"]) for index, level in enumerate(stored["levels"])
    )
    return arrays["vectors"], topics.Topics(levels, stored["token_of"]), torch.from_numpy(arrays["tokens"])


def _teach(made_from: Ingredients, texts: Sequence[str], tokenizer: Any, path: Path, names: Path) -> None:
    teacher = Teacher()
    vectors = teacher.vectors(
        texts, lambda done: made_from.say(f"teacher {done}/{len(texts)}") if done % 6400 == 0 else None
    )
    words = [word for word in topics.common_words(texts) if len(_ids(tokenizer, word)) == 1]
    token_of = {word: _ids(tokenizer, word)[0] for word in words}
    found = topics.find_topics(
        vectors,
        words,
        teacher.vectors(words),
        made_from.recipe.curriculum.topic_levels,
        token_of,
        made_from.recipe.seed,
    )
    arrays = {
        "vectors": vectors,
        "tokens": distill.token_vectors(tokenizer, teacher, made_from.recipe.backbone.d_model).numpy(),
        **{f"assignment.{index}": level.assignment for index, level in enumerate(found.levels)},
    }
    save_arrays(arrays, path)
    names.write_text(
        json.dumps({"levels": [level.names for level in found.levels], "token_of": found.token_of}), encoding="utf-8"
    )
    made_from.say("topics: " + ", ".join(found.levels[0].names))


def _ids(tokenizer: Any, text: str) -> list[int]:
    ids: list[int] = tokenizer(text, add_special_tokens=False)["input_ids"]  # no stubs
    return ids


@dataclass(frozen=True)
class Pretrained:
    """What the multi-task stages start from."""

    backbone: Any
    tokenizer: Any
    texts: Sequence[str]
    topics: topics.Topics


def make_base(made_from: Ingredients, output: Path) -> None:
    """All stages: from text and sources to the folder of a base.

    Args:
        made_from: recipe, sources, corpus, work folder.
        output: the base's folder.
    """
    recipe = made_from.recipe
    started = pretrain(made_from)
    encoder = TextEncoder(started.tokenizer, PAIR_SEPARATOR, recipe.backbone.max_tokens)
    folders = sentences.source_folders(made_from.sources)
    sources = [curriculum.read_source(folder) for folder in folders]
    made = curriculum.build_curriculum(sources, started.texts, started.topics, recipe.curriculum, encoder, recipe.seed)
    made_from.say(f"curriculum: {len(made.tasks)} tasks")
    engine, embeddings = _new_hypernetwork(recipe, started.backbone, encoder, len(made.tasks))
    first = recipe.multitask
    loss_of = multitask.backbone_loss(engine, made.plain, first.batch, recipe.seed + 1)
    multitask.train_backbone(engine, loss_of, first, made_from.work, made_from.say)
    second = recipe.hypernetwork
    loss_of = multitask.hypernetwork_loss(engine, embeddings, made, second.batch, recipe.seed + 2)
    multitask.train_hypernetwork(engine, embeddings, loss_of, second, made_from.work, made_from.say)
    names = [task.name for task in made.tasks[: len(sources) + len(started.topics.levels)]]
    table = assemble.embedding_table(embeddings, names)
    metrics = {}
    for source, folder in zip(sources, folders, strict=True):
        metrics[source.name] = assemble.measure(engine, table[source.name], source, folder)
        made_from.say(f"{source.name}: {json.dumps(metrics[source.name]['test'])}")
    anchors = {name: level.names for name, level in zip(names[len(sources) :], started.topics.levels, strict=True)}
    document = assemble.describe(recipe, sources, anchors, metrics, PAIR_SEPARATOR)
    assemble.save_base(engine, table, document, sources, output)
    made_from.say(f"base: {output}")


def _new_hypernetwork(
    recipe: Recipe, backbone: Any, encoder: TextEncoder, tasks: int
) -> tuple[Engine, nn.ParameterList]:
    shape = recipe.backbone
    torch.manual_seed(recipe.seed + 1)
    hypernetwork = Hypernetwork(
        d_model=shape.d_model,
        encoder_layers=shape.encoder_layers,
        decoder_layers=shape.decoder_layers,
        bottleneck=shape.d_model // recipe.hypernetwork.reduction_factor,
        task_embedding_size=recipe.hypernetwork.task_embedding_size,
        projector_width=recipe.hypernetwork.projector_width,
    )
    return Engine(backbone, hypernetwork, encoder), _new_embeddings(tasks, recipe.hypernetwork.task_embedding_size)


def _new_embeddings(tasks: int, size: int) -> nn.ParameterList:
    """One z (1, t) ~ N(0, 1) per task."""
    return nn.ParameterList(nn.Parameter(torch.randn(1, size)) for _ in range(tasks))


def pretrain(made_from: Ingredients) -> Pretrained:
    """Distil and teach to read."""
    recipe = made_from.recipe
    torch.manual_seed(recipe.seed)
    texts = load_texts(made_from)
    tokenizer = load_tokenizer(made_from, texts)
    vectors, found, tokens = load_teaching(made_from, texts, tokenizer)
    backbone = distill.new_backbone(recipe.backbone)
    with torch.no_grad():
        backbone.shared.weight.copy_(tokens)
    limit = recipe.backbone.max_tokens - 1
    encoded = tokenizer(list(texts), add_special_tokens=False)["input_ids"]
    learning = distill.Distillation(
        [[*ids[:limit], 1] for ids in encoded],
        vectors,
        _ids(tokenizer, PAIR_SEPARATOR),
        found,
        recipe.distill.batch,
        recipe.seed,
    )
    _distill(made_from, backbone, learning)
    _read(made_from, backbone, learning)
    return Pretrained(backbone, tokenizer, texts, found)


def _distill(made_from: Ingredients, backbone: Any, learning: distill.Distillation) -> None:
    head = nn.Linear(made_from.recipe.backbone.d_model, SIZE)
    encoder = backbone.encoder
    groups = [([*encoder.parameters(), *head.parameters()], 1.0)]
    run_stage(
        "distill", made_from.recipe.distill, {"encoder": encoder, "head": head}, groups,
        learning.encoder_loss(backbone, head), made_from.work, made_from.say,
    )  # fmt: skip


def _read(made_from: Ingredients, backbone: Any, learning: distill.Distillation) -> None:
    heads = distill.reader_heads(made_from.recipe.backbone.d_model)
    encoder = list(backbone.encoder.parameters())
    known = {id(parameter) for parameter in encoder}
    others = [parameter for parameter in backbone.parameters() if id(parameter) not in known]
    run_stage(
        "read", made_from.recipe.read, {"backbone": backbone, "heads": heads},
        [(encoder, 1.0), ([*others, *heads.parameters()], 2.0)],
        learning.reader_loss(backbone, heads), made_from.work, made_from.say,
    )  # fmt: skip
