"""Whose task each row of a batch is: drawn evenly or by Zipf's law, alike for all arms."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

DRAWS: Final = ("uniform", "zipf")
ZIPF: Final = 1.1  # exponent


def drawn(kind: str, tasks: int, rows: int, rng: np.random.Generator) -> np.ndarray:
    """The task of each row (rows,)."""
    if kind == "uniform":
        return rng.integers(tasks, size=rows)
    weights = 1.0 / np.arange(1, tasks + 1) ** ZIPF
    return rng.choice(tasks, size=rows, p=weights / weights.sum())


def draws(kind: str, tasks: int, rows: int) -> Iterator[np.ndarray]:
    """One draw a round: an iterator each arm, all of the same."""
    rng = np.random.default_rng(tasks)
    while True:
        yield drawn(kind, tasks, rows, rng)
