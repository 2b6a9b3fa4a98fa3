"""Validation rows of the sources, encoded once, scored with the current weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

from onboard.data.regression import Buckets
from onboard.domain.dataset import Example, class_indices
from onboard.evaluate.evaluation import evaluate_classification, evaluate_regression
from onboard.evaluate.intervals import Metric
from onboard.making.curriculum.source import Source
from onboard.making.multitask.loop import Scores
from onboard.making.multitask.tasks import EncodedRows
from onboard.model.batched import log_probabilities
from onboard.model.engine import Engine
from onboard.model.scoring import LabelTrie


@dataclass(frozen=True)
class HeldOut:
    """Held-out rows of a source, ready for scoring.

    Args:
        source: its labels and words.
        ids: token ids of the rows.
        true: class index (n,) or value (n,) of each row.
        trie: of the label words.
    """

    source: Source
    ids: Sequence[Sequence[int]]
    true: np.ndarray
    trie: LabelTrie

    @classmethod
    def of(cls, source: Source, rows: Sequence[Example], engine: Engine) -> HeldOut:
        """Encode rows of a source."""
        encoded = EncodedRows(rows, engine.encoder)
        if source.kind == "regression":
            true = np.array([float(row.label) for row in rows])
        else:
            true = np.array(class_indices(source.labels, rows))
        return cls(source, encoded.take(np.arange(len(rows))), true, engine.trie(source.words))

    def score(
        self, engine: Engine, z: np.ndarray, precision: torch.dtype, before_batch: Callable[[], None] = lambda: None
    ) -> dict[str, Metric]:
        """Return all metrics of the rows with an embedding."""
        with torch.autocast(engine.device.type, dtype=torch.bfloat16, enabled=precision == torch.bfloat16):
            scores = log_probabilities(engine, self.ids, z, self.trie, before_batch)
        probabilities = np.exp(scores)
        if self.source.low is not None and self.source.high is not None:
            predicted = probabilities @ np.array(Buckets(self.source.low, self.source.high).values)
            return evaluate_regression(self.true, predicted)
        return evaluate_classification(self.true, probabilities / probabilities.sum(axis=1, keepdims=True), "mcc")


def scorer(
    engine: Engine,
    embeddings: nn.ParameterList,
    sources: Sequence[Source],
    rows: int,
    precision: torch.dtype,
    seed: int,
) -> Callable[[Callable[[], None]], Scores]:
    """Return a function that scores the sources' validation rows with the first embeddings.

    Args:
        embeddings: those of the sources come first, in order.
        sources: with validation rows and the metric for choosing.
        rows: maximum number of rows per source, drawn once by the seed.
    """
    held_out = [HeldOut.of(source, drawn(source.validation, rows, seed), engine) for source in sources]

    def score(before_batch: Callable[[], None]) -> Scores:
        values = {}
        for index, task in enumerate(held_out):
            z = embeddings[index].detach()[0].float().cpu().numpy()
            values[task.source.name] = task.score(engine, z, precision, before_batch)[task.source.metric].value
        return Scores(values, {source.name: source.metric for source in sources})

    return score


def drawn(rows: Sequence[Example], most: int | None, seed: int) -> tuple[Example, ...]:
    """Return all rows, or `most` of them drawn by the seed, in their order."""
    if most is None or len(rows) <= most:
        return tuple(rows)
    indices = np.sort(np.random.default_rng((seed, 13)).choice(len(rows), most, replace=False))
    return tuple(rows[index] for index in indices)
