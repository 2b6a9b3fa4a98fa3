"""A training task: a name, a size, and batches that depend on the step alone."""

from __future__ import annotations

from typing import Final, Protocol

import numpy as np

from onboard.model.batch import Batch

TOKENS_PER_ROW: Final = 40  # a batch's budget is `size` times this many tokens
FEWEST_ROWS: Final = 8  # per batch, however long its texts are


class TrainingTask(Protocol):
    """A task that a base is trained on."""

    @property
    def name(self) -> str:
        """Unique in its curriculum, and reproducible for the same material, counts and seed."""

    @property
    def words(self) -> tuple[str, ...]:
        """Every label word of the task. A batch contains all of them or a random subset."""

    @property
    def rows(self) -> int:
        """The number of rows that batches are drawn from."""

    def batch(self, step: int, size: int) -> Batch:
        """Return the batch of a step: at most `size` rows, fewer if the texts are long. Deterministic."""


def rows_within_budget(lengths: np.ndarray, size: int) -> int:
    """Return how many leading rows with these token counts (B,) fit into size * 40 padded tokens; at least 8."""
    budget = size * TOKENS_PER_ROW
    padded = np.maximum.accumulate(lengths) * np.arange(1, len(lengths) + 1)
    fitting = int(np.searchsorted(padded, budget, side="right"))
    return min(len(lengths), max(fitting, FEWEST_ROWS))
