"""Lessons of a base's sources for its prior: a readout of a few hundred rows each, with the base's encoder."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from onboard.data.splits import shots
from onboard.data.targets import label_weights, targets_of
from onboard.data.verbaliser import words_of
from onboard.domain.dataset import Dataset
from onboard.errors import InputError
from onboard.making.curriculum.source import Source
from onboard.model.engine import Engine
from onboard.model.readout import bare_features
from onboard.model.readout_features import blocks_of
from onboard.statistics.prior import NAME_BLOCKS, Lesson
from onboard.statistics.readout import lesson_of

ROWS: Final = 240  # per source, balanced over labels as far as possible


def lessons_of_sources(engine: Engine, sources: Iterable[Source], say: Callable[[str], None]) -> dict[str, Lesson]:
    """Return the lesson of every classification source by name. Sources without a usable readout have none.

    Args:
        engine: backbone and tokenizer of the base.
        say: receives messages about sources without a lesson.
    """
    lessons = {}
    for source in sources:
        if source.kind != "classification":
            continue
        try:
            lessons[source.name] = _lesson(engine, source)
        except InputError as error:
            say(f"{source.name} teaches nothing: {error.message}")
    return lessons


def _lesson(engine: Engine, source: Source) -> Lesson:
    dataset = shots(Dataset(source.kind, source.labels, source.train), ROWS, 0)
    width, blocks = engine.backbone.config.d_model, blocks_of(pairs=dataset.pairs)
    texts = engine.encoder.encode([(row.text_a, row.text_b) for row in dataset.train])
    words = engine.encoder.encode([(words_of(label), None) for label in source.labels])
    features = bare_features(engine, texts)[:, : blocks * width]
    targets = targets_of(dataset, dataset.train) * label_weights(dataset)
    return lesson_of(features, targets, bare_features(engine, words)[:, : NAME_BLOCKS * width], blocks)
