"""What a training task is: a name, a size, and batches that depend on the step alone."""

from __future__ import annotations

from typing import Final, Protocol

import numpy as np

from onboard.model.batch import Batch

TOKENS_PER_ROW: Final = 40  # `size` rows of so many tokens are a batch's budget
FEWEST_ROWS: Final = 8  # of a batch, however long its texts are


class TrainingTask(Protocol):
    """Something that a base learns."""

    @property
    def name(self) -> str:
        """Unique in its curriculum, and the same for the same material, counts and seed."""

    @property
    def words(self) -> tuple[str, ...]:
        """Every label word that it may ask for: all in each batch, or a few of them drawn anew."""

    @property
    def rows(self) -> int:
        """How many rows it draws from."""

    def batch(self, step: int, size: int) -> Batch:
        """The batch of a step: at most `size` rows, fewer when the texts are long, the same for the same step."""


def rows_within_budget(lengths: np.ndarray, size: int) -> int:
    """How many of the first rows, with these token counts (B,), fit into size * 40 padded tokens: 8 at least."""
    budget = size * TOKENS_PER_ROW
    padded = np.maximum.accumulate(lengths) * np.arange(1, len(lengths) + 1)
    fitting = int(np.searchsorted(padded, budget, side="right"))
    return min(len(lengths), max(fitting, FEWEST_ROWS))
