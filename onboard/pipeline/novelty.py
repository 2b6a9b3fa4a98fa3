"""Describe a job's rows, so that its version can flag texts that are unlike them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from onboard.data.splits import evenly_spaced
from onboard.domain.dataset import Example
from onboard.pipeline.generic_texts import generic_features
from onboard.pipeline.material import Workbench
from onboard.pipeline.readout import drawn
from onboard.statistics.novelty import Novelty, find_novelty

MOST_HELD: Final = 256  # held-out rows that measure false alarms


def novelty_of(bench: Workbench, checkpoint: Callable[[], None]) -> Novelty | None:
    """Fit the novelty detector on the training rows; None if there are too few rows or none.

    The contrast are the guard's canaries, which were written for this repository: single texts for tasks with one text,
    pairs for tasks with two.

    Args:
        bench: the job's material.
        checkpoint: stops the work.
    """
    dataset = bench.dataset
    if not dataset.train:
        return None
    rows = [dataset.train[row] for row in drawn(bench)]
    held = held_rows(bench)
    groups = np.zeros(len(rows), dtype=np.int64) if bench.buckets is not None else _groups(bench, rows)
    read, unread = (bench.features(some, checkpoint)[:, : bench.width] for some in (rows, held))
    strange = generic_features(bench, checkpoint, pairs=rows[0].text_b is not None)[:, : bench.width]
    return find_novelty(read, groups, unread, strange)


def held_rows(bench: Workbench) -> list[Example]:
    """Return the validation rows that are read to measure false alarms."""
    validation = bench.dataset.validation
    return [validation[row] for row in evenly_spaced(len(validation), MOST_HELD)]


def _groups(bench: Workbench, rows: Sequence[Example]) -> np.ndarray:
    """Return a group per row (n,): its label, for several labels the rarest, and for no label a separate group."""
    targets = bench.targets(rows)
    if not bench.dataset.several_labels:
        label: np.ndarray = targets.argmax(1)
        return label
    rarity = np.where(targets > 0, targets.sum(0), np.inf)
    rarest: np.ndarray = np.where(targets.any(1), rarity.argmin(1), targets.shape[1])
    return rarest
