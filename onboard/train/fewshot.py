"""Train a task's embedding on a frozen backbone under a frozen hypernetwork."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from onboard.contract.report import TrainingFacts
from onboard.model.batch import LabelledRows, TrainingSet
from onboard.model.engine import Engine
from onboard.model.execution import UNWATCHED, Execution
from onboard.model.interpolate import embedding_between
from onboard.model.side_by_side import Moved, TrainingRun, train_side_by_side
from onboard.model.steps import Steps
from onboard.train.settings import FewShotSettings, batches_an_epoch


@dataclass(frozen=True)
class Trained:
    """A trained embedding.

    Args:
        z: (t,) float32.
        losses: training loss at each step, nats; mean over seeds.
        norms: ‖z‖ after each step; mean over seeds.
        padding_share: share of padding among all computed token positions.
    """

    z: np.ndarray
    losses: tuple[float, ...]
    norms: tuple[float, ...]
    padding_share: float

    def shortened(self, start: np.ndarray, share: float) -> Trained:
        """Move z back to this share of the way from the start (t,); losses and norms are unchanged."""
        return replace(self, z=embedding_between(start, self.z, share))

    def to_document(self) -> TrainingFacts:
        """Return the facts of the training: steps, losses, norms and padding."""
        return TrainingFacts(
            steps=len(self.losses), loss=self.losses, z_norm=self.norms, padding_share=self.padding_share
        )


@dataclass(frozen=True)
class Part:
    """Rows (indices) that one embedding is trained on, with the number of batch orders.

    Batches shrink in proportion to the rows, so the number of steps and of passes per row stays the same.
    """

    rows: np.ndarray
    seeds: int


def train_parts(
    engine: Engine,
    training_set: TrainingSet,
    start: np.ndarray,
    settings: FewShotSettings,
    seed: int,
    parts: Sequence[Part],
    execution: Execution = UNWATCHED,
) -> list[Trained]:
    """Train one embedding on each part of the rows, all at the same time. On a CPU, equal seeds give equal bytes.

    Args:
        engine: frozen backbone and hypernetwork.
        training_set: labeled rows and label words.
        start: (t,) initial value of every z.
        settings: steps, batch, learning rate.
        parts: parts of the rows, which may overlap.
        execution: called at every step.

    Raises:
        JobFailedError: the loss is not finite.
        OutOfMemoryError: the GPU cannot hold even a single row.
    """
    rows = training_set.rows
    runs = [
        TrainingRun(start, training_set.trie, order) for part in parts for order in _orders(rows, part, settings, seed)
    ]
    steps = Steps(
        settings.learning_rate, falling=True, averaged_share=settings.averaged_share,
        norm_per_root=settings.norm_per_root,
    )  # fmt: skip
    moved = iter(
        train_side_by_side(engine, runs, rows.ids, rows.targets, steps, execution.on_step, execution.trained_at_once)
    )
    return [_mean([next(moved) for _ in range(part.seeds)]) for part in parts]


def row_passes(rows: LabelledRows, parts: Sequence[Part], settings: FewShotSettings, seed: int) -> int:
    """Return the number of rows that pass forward and backward through the model when these parts are trained."""
    return sum(len(batch) for part in parts for order in _orders(rows, part, settings, seed) for batch in order)


def _orders(rows: LabelledRows, part: Part, settings: FewShotSettings, seed: int) -> list[list[np.ndarray]]:
    """Return row indices of every step, for each batch order of a part."""
    size = settings.batch * len(part.rows) / len(rows.ids)
    lengths = [len(rows.ids[row]) for row in part.rows]
    orders = [batches(lengths, settings.steps, size, seed, number) for number in range(part.seeds)]
    return [[part.rows[chosen] for chosen in order] for order in orders]


def _mean(moved: Sequence[Moved]) -> Trained:
    """Average the results of several batch orders."""
    return Trained(
        np.stack([trained.z for trained in moved]).mean(0),
        tuple(np.mean([trained.losses for trained in moved], axis=0).tolist()),
        tuple(np.mean([trained.norms for trained in moved], axis=0).tolist()),
        moved[0].padding_share,
    )


def batches(lengths: Sequence[int], steps: int, size: float, seed: int, number: int = 0) -> list[np.ndarray]:
    """Return row indices of every step: shuffled batches per epoch, each of rows of similar length, ties broken
    randomly.

    Args:
        lengths: tokens of each row.
        steps: number of batches.
        size: mean rows per batch in an epoch; at least one.
        seed, number: determine the order.
    """
    rng = np.random.default_rng((seed, 7, number) if number else (seed, 7))
    count = batches_an_epoch(len(lengths), size)
    batches: list[np.ndarray] = []
    while len(batches) < steps:
        noisy = np.asarray(lengths) * rng.uniform(0.8, 1.25, len(lengths))
        parts = np.array_split(np.argsort(noisy, kind="stable"), count)
        batches.extend(parts[index] for index in rng.permutation(count))
    return batches[:steps]
