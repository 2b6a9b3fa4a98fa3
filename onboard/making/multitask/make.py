"""Make a base folder from a recipe and an existing T5."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from onboard.bases import folder_digest
from onboard.domain.dataset import example_key
from onboard.errors import InputError
from onboard.making.curriculum.source import Source
from onboard.making.multitask.assemble import Description, TrainedBase, write_base
from onboard.making.multitask.backbone import FoundBackbone, find_backbone, load_given
from onboard.making.multitask.hypernetwork import (
    HypernetworkTraining,
    new_engine,
    norms_beside,
    round_to_half,
    train_hypernetwork,
)
from onboard.making.multitask.loop import Running
from onboard.making.multitask.recipe import Recipe, as_told
from onboard.making.multitask.sources import read_sources
from onboard.making.multitask.tasks import SourceBatches
from onboard.model.encoding import TextEncoder

PAIR_SEPARATOR: Final = "|"


def make_base(recipe: Recipe, running: Running, output: Path) -> None:
    """Find the backbone, read the sources, train, measure, write. Only the first process does the last two.

    Args:
        running: work folder, progress, processes, signals.

    Raises:
        OnboardError: of any kind, with a remedy.
        StoppedError: SIGTERM or SIGINT.
    """
    found_backbone = find_backbone(recipe.backbone)
    licence = _licence(recipe, found_backbone)
    rows = read_sources(recipe.sources, recipe.seed)
    backbone, tokenizer = load_given(found_backbone)
    round_to_half(backbone)
    encoder = TextEncoder(tokenizer, PAIR_SEPARATOR, recipe.backbone.max_tokens)
    engine = new_engine(recipe.hypernetwork, backbone, encoder, recipe.seed).to(running.processes.device)
    sources = [source.worded(encoder) for source in rows]
    tasks = tuple(SourceBatches(source, encoder, recipe.seed + index) for index, source in enumerate(sources))
    if running.processes.first:
        counts = ", ".join(f"{source.name} {len(source.train):,}" for source in sources)
        running.say(f"backbone: {found_backbone.source}  rows: {counts}")
    stage = recipe.hypernetwork
    settings, beside = _settings(recipe, found_backbone, sources), norms_beside(engine, stage)
    training = HypernetworkTraining(stage, recipe.seed + 2, settings, beside, round_to_half)
    learned = train_hypernetwork(engine, ((tasks, 1.0),), sources, training, running)
    if running.processes.first:
        table = learned.table([source.name for source in sources])
        trained = TrainedBase(engine, sources, table, fingerprints=learned.fingerprints)
        description = Description(
            recipe.name, licence, found_backbone.to_json(), stage.reduction_factor, as_told(recipe), weights="float16"
        )
        write_base(trained, description, output, running.say)


def _licence(recipe: Recipe, backbone: FoundBackbone) -> str:
    """Return the license of the recipe, or else of the backbone on the hub.

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
    raise InputError("licence-unknown", field="licence", source=backbone.source)  # fmt: skip


def _settings(recipe: Recipe, backbone: FoundBackbone, sources: Sequence[Source]) -> dict[str, Any]:
    """Return what determines the weights: the recipe without names, the backbone's digest, the sources' rows."""
    fields = recipe.model_dump(mode="json", by_alias=True, exclude={"name", "licence"})
    return {**fields, "backbone_digest": folder_digest(backbone.folder)} | rows_digests(sources)


def rows_digests(sources: Sequence[Source]) -> dict[str, Any]:
    """Return a digest of each source's training and validation rows, with family and weight, for checkpoints."""
    return {"rows": {source.name: {"digest": _digest(source), **_balance(source)} for source in sources}}


def _balance(source: Source) -> dict[str, Any]:
    """Return family and weight of a source, without default values."""
    balance = {"family": source.about.family, "weight": source.about.weight}
    return {name: value for name, value in balance.items() if value not in ("", 1.0)}


def _digest(source: Source) -> str:
    total = hashlib.sha256()
    for split in (source.train, source.validation):
        for row in split:
            total.update(f"{example_key(row)}\n".encode("utf-8", "surrogatepass"))
        total.update(b"\n")
    return total.hexdigest()
