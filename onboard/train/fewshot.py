"""Training of one task's embedding on a frozen backbone under a frozen hypernetwork."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from onboard.model.batch import LabelledRows
from onboard.model.engine import Engine
from onboard.model.interpolate import embedding_between
from onboard.model.memory import RowsAtOnce
from onboard.model.scoring import LabelTrie
from onboard.model.side_by_side import Moved, Run, Steps, train_side_by_side


@dataclass(frozen=True)
class FewShotSettings:
    """How an embedding is trained (docs/training.md).

    Args:
        steps: optimiser steps, at least; many rows get more of them, see `for_rows`.
        batch: rows a step, at least.
        passes: how often each of many rows is to be seen.
        most_batch, most_steps: that many rows ask for.
        learning_rate: of Adam, falls linearly to 0; inputs of so few numbers want far more than weights do.
        averaged_share: the result is the mean of z over this last share of the steps.
        norm_per_root: bound of ‖z‖ as a multiple of √t; a large z drowns layer and position ids in the conditioning.
        seeds: orders of the batches that are trained side by side; the result is their mean.
        fold_seeds: the same of each fold of the cross-validation.
        curve: shares of each fold's training rows that are trained on too, to see what more rows would bring; where
            rows are held out, whether two halves of the training rows are.
    """

    steps: int = 80
    batch: int = 2
    passes: int = 2
    most_batch: int = 8
    most_steps: int = 400
    learning_rate: float = 0.2
    averaged_share: float = Steps.averaged_share
    norm_per_root: float = Steps.norm_per_root
    seeds: int = 2
    fold_seeds: int = 1
    curve: tuple[float, ...] = (0.5,)

    def for_rows(self, count: int) -> FewShotSettings:
        """The same, to see each of so many rows `passes` times: by larger batches first, then by more steps."""
        seen = self.passes * count
        batch = max(self.batch, min(self.most_batch, math.ceil(seen / self.steps)))
        steps = max(self.steps, min(self.most_steps, math.ceil(seen / batch)))
        return replace(self, steps=steps, batch=batch)


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

    def to_json(self) -> dict[str, Any]:
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


def train_embedding(
    engine: Engine,
    start: np.ndarray,
    rows: LabelledRows,
    trie: LabelTrie,
    settings: FewShotSettings,
    seed: int,
    on_step: Callable[[int, float], None] = lambda *_: None,
    at_once: RowsAtOnce | None = None,
) -> Trained:
    """Train one embedding on all rows; arguments as of `train_parts`."""
    everything = [Part(np.arange(len(rows.ids)), settings.seeds)]
    return train_parts(engine, start, rows, trie, settings, seed, everything, on_step, at_once)[0]


def train_parts(
    engine: Engine,
    start: np.ndarray,
    rows: LabelledRows,
    trie: LabelTrie,
    settings: FewShotSettings,
    seed: int,
    parts: Sequence[Part],
    on_step: Callable[[int, float], None] = lambda *_: None,
    at_once: RowsAtOnce | None = None,
) -> list[Trained]:
    """Train one embedding on each part of the rows, all side by side. The same bytes for the same seed on a CPU.

    Args:
        engine: frozen backbone and hypernetwork.
        start: (t,) where every z starts.
        rows: labelled rows.
        trie: of the label words.
        settings: steps, batch, learning rate.
        seed: of the batches' order.
        parts: of the rows; they may share rows.
        on_step: told step (from 1) and loss; may raise to stop.
        at_once: how many rows fit into the memory; kept for further calls.

    Raises:
        JobFailedError: the loss is not finite.
        OutOfMemoryError: the GPU has no room for a single row.
    """
    runs = [Run(start, trie, order) for part in parts for order in _orders(rows, part, settings, seed)]
    steps = Steps(
        settings.learning_rate, falling=True, averaged_share=settings.averaged_share,
        norm_per_root=settings.norm_per_root,
    )  # fmt: skip
    moved = iter(train_side_by_side(engine, runs, rows.ids, rows.targets, steps, on_step, at_once))
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
    count = min(len(lengths), max(1, int(len(lengths) / size)))
    batches: list[np.ndarray] = []
    while len(batches) < steps:
        noisy = np.asarray(lengths) * rng.uniform(0.8, 1.25, len(lengths))
        parts = np.array_split(np.argsort(noisy, kind="stable"), count)
        batches.extend(parts[index] for index in rng.permutation(count))
    return batches[:steps]
