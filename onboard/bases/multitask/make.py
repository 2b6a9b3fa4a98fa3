"""From a recipe and a T5 that exists to the folder of a base."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from onboard.bases import folder_digest
from onboard.bases.curriculum.source import Source
from onboard.bases.multitask.assemble import Description, measure_all, save_base
from onboard.bases.multitask.backbone import FoundBackbone, find_backbone, load_given
from onboard.bases.multitask.hypernetwork import (
    TaskEmbeddings,
    new_engine,
    norms_beside,
    round_to_half,
    train_hypernetwork,
)
from onboard.bases.multitask.loop import Running
from onboard.bases.multitask.recipe import Recipe, as_told
from onboard.bases.multitask.sources import SourceRows, read_sources
from onboard.bases.multitask.tasks import SourceTask
from onboard.domain.dataset import Dataset, example_key
from onboard.errors import InputError
from onboard.model.encoding import TextEncoder
from onboard.model.engine import Engine

PAIR_SEPARATOR: Final = "|"


def make_base(recipe: Recipe, running: Running, output: Path) -> None:
    """Find the backbone, read the sources, train, measure, write. Only the first process does the last two.

    Args:
        recipe: every number.
        running: work folder, progress, processes, signals.
        output: the base's folder.

    Raises:
        OnboardError: each of its kinds, with what mends it.
        StoppedError: SIGTERM or SIGINT.
    """
    given = find_backbone(recipe.backbone)
    licence = _licence(recipe, given)
    rows = read_sources(recipe.sources, recipe.seed)
    backbone, tokenizer = load_given(given)
    round_to_half(backbone)
    encoder = TextEncoder(tokenizer, PAIR_SEPARATOR, recipe.backbone.max_tokens)
    engine = new_engine(recipe.hypernetwork, backbone, encoder, recipe.seed).to(running.processes.device)
    sources = [source.worded(encoder) for source in rows]
    tasks = tuple(SourceTask(source, encoder, recipe.seed + index) for index, source in enumerate(sources))
    if running.processes.first:
        counts = ", ".join(f"{source.name} {len(source.train):,}" for source in sources)
        running.say(f"backbone: {given.source}  rows: {counts}")
    settings = _settings(recipe, given, rows)
    learned = train_hypernetwork(
        engine, ((tasks, 1.0),), sources, [source.metric for source in rows], recipe.hypernetwork,
        norms_beside(engine, recipe.hypernetwork), recipe.seed + 2, settings, running, round_to_half,
    )  # fmt: skip
    if running.processes.first:
        _write(recipe, given, licence, engine, learned, rows, sources, running, output)


def _licence(recipe: Recipe, backbone: FoundBackbone) -> str:
    """The recipe's, else what the hub says of the backbone.

    Raises:
        InputError: neither is known.
    """
    if recipe.licence.strip():
        return recipe.licence
    if backbone.licence:
        return (
            f"{backbone.licence}, the licence of the backbone {backbone.source} as the hub names it. "
            "The rows that it was trained on have licences of their own."
        )
    raise InputError(
        f"The licence of the new weights is not known: {backbone.source} does not name one.",
        'Add licence = "…" to the recipe, or give --licence.', field="licence",
    )  # fmt: skip


def _settings(recipe: Recipe, backbone: FoundBackbone, rows: Sequence[SourceRows]) -> dict[str, Any]:
    """What the trained weights depend on: the recipe without names, the backbone's bytes, the sources' rows."""
    fields = recipe.model_dump(mode="json", by_alias=True, exclude={"name", "licence"})
    return {**fields, "backbone_digest": folder_digest(backbone.folder)} | rows_digests(rows)


def rows_digests(rows: Sequence[SourceRows]) -> dict[str, Any]:
    """A digest of each source's training and validation rows: what else a checkpoint depends on."""
    return {"rows": {each.name: {"digest": _digest(each.dataset)} for each in rows}}


def _digest(dataset: Dataset) -> str:
    total = hashlib.sha256()
    for split in (dataset.train, dataset.validation):
        for row in split:
            total.update(f"{example_key(row)}\n".encode("utf-8", "surrogatepass"))
        total.update(b"\n")
    return total.hexdigest()


def _write(
    recipe: Recipe,
    backbone: FoundBackbone,
    licence: str,
    engine: Engine,
    learned: TaskEmbeddings,
    rows: Sequence[SourceRows],
    sources: Sequence[Source],
    running: Running,
    output: Path,
) -> None:
    table = learned.table([source.name for source in sources])
    metrics = measure_all(engine, table, sources, [source.dataset.test for source in rows], running.say)
    stage = recipe.hypernetwork
    description = Description(
        name=recipe.name, licence=licence, backbone=backbone.to_json(), separator=PAIR_SEPARATOR,
        max_tokens=recipe.backbone.max_tokens, method=stage.method, task_embedding_size=stage.embedding_size,
        reduction_factor=stage.reduction_factor, recipe=as_told(recipe),
        weights="float16",
    )  # fmt: skip
    document = description.document(sources, {}, {source.name: source.metric for source in rows}, metrics)
    save_base(engine, table, document, sources, output, learned.fingerprints)
    running.say(f"base: {output}")
