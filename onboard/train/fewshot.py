"""Training of one task's embedding on a frozen backbone under a frozen hypernetwork."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from onboard.domain.report import TrainingJson
from onboard.model.batch import LabelledRows, TrainingSet
from onboard.model.engine import Engine
from onboard.model.execution import UNWATCHED, Execution
from onboard.model.interpolate import embedding_between
from onboard.model.side_by_side import Moved, Run, train_side_by_side
from onboard.model.steps import Steps
from onboard.train.settings import FewShotSettings, batches_an_epoch


@dataclass(frozen=True)
class Trained:
    """A trained embedding.

    Args:
        z: (t,) float32.
        losses: training loss of each step, nats; of several seeds the mean.
        norms: ‖z‖ after each step; of several seeds the mean.
        padding_share: share of padding among all token positions that were computed.
    """

    z: np.ndarray
    losses: tuple[float, ...]
    norms: tuple[float, ...]
    padding_share: float

    def shortened(self, start: np.ndarray, share: float) -> Trained:
        """After this share of the way from the start (t,); losses and norms stay the whole's."""
        return replace(self, z=embedding_between(start, self.z, share))

    def to_json(self) -> TrainingJson:
        """The course of the training (without z) as a JSON-compatible document."""
        return {
            "steps": len(self.losses),
            "loss": list(self.losses),
            "z_norm": list(self.norms),
            "padding_share": self.padding_share,
        }


@dataclass(frozen=True)
class Part:
    """Rows (indices) that one embedding is trained on, in so many orders of the batches.

    They are trained on in batches as much smaller as they are fewer than all: as many steps, each row as often.
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
    """Train one embedding on each part of the rows, all side by side. The same bytes for the same seed on a CPU.

    Args:
        engine: frozen backbone and hypernetwork.
        training_set: labelled rows and label words.
        start: (t,) where every z starts.
        settings: steps, batch, learning rate.
        seed: of the batches' order.
        parts: of the rows; they may share rows.
        execution: told every step.

    Raises:
        JobFailedError: the loss is not finite.
        OutOfMemoryError: the GPU has no room for a single row.
    """
    rows = training_set.rows
    runs = [Run(start, training_set.trie, order) for part in parts for order in _orders(rows, part, settings, seed)]
    steps = Steps(
        settings.learning_rate, falling=True, averaged_share=settings.averaged_share,
        norm_per_root=settings.norm_per_root,
    )  # fmt: skip
    moved = iter(
        train_side_by_side(engine, runs, rows.ids, rows.targets, steps, execution.on_step, execution.trained_at_once)
    )
    return [_mean([next(moved) for _ in range(part.seeds)]) for part in parts]


def row_passes(rows: LabelledRows, parts: Sequence[Part], settings: FewShotSettings, seed: int) -> int:
    """How many rows go forward and back through the model when these parts are trained."""
    return sum(len(batch) for part in parts for order in _orders(rows, part, settings, seed) for batch in order)


def _orders(rows: LabelledRows, part: Part, settings: FewShotSettings, seed: int) -> list[list[np.ndarray]]:
    """Row indices of every step, for each order of a part's batches."""
    size = settings.batch * len(part.rows) / len(rows.ids)
    lengths = [len(rows.ids[row]) for row in part.rows]
    orders = [batches(lengths, settings.steps, size, seed, number) for number in range(part.seeds)]
    return [[part.rows[chosen] for chosen in order] for order in orders]


def _mean(moved: Sequence[Moved]) -> Trained:
    """What several orders of the batches came to on average."""
    return Trained(
        np.stack([trained.z for trained in moved]).mean(0),
        tuple(np.mean([trained.losses for trained in moved], axis=0).tolist()),
        tuple(np.mean([trained.norms for trained in moved], axis=0).tolist()),
        moved[0].padding_share,
    )


def batches(lengths: Sequence[int], steps: int, size: float, seed: int, number: int = 0) -> list[np.ndarray]:
    """Row indices of every step: epochs of shuffled batches, each of rows of like length (noise breaks the ties).

    Args:
        lengths: tokens of each row.
        steps: how many batches.
        size: rows of a batch, in the mean of an epoch; at least one.
        seed, number: decide the order.
    """
    rng = np.random.default_rng((seed, 7, number) if number else (seed, 7))
    count = batches_an_epoch(len(lengths), size)
    batches: list[np.ndarray] = []
    while len(batches) < steps:
        noisy = np.asarray(lengths) * rng.uniform(0.8, 1.25, len(lengths))
        parts = np.array_split(np.argsort(noisy, kind="stable"), count)
        batches.extend(parts[index] for index in rng.permutation(count))
    return batches[:steps]
