"""The time that rows take in the model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

# Per row on two cores with `mini`, in float32; with bfloat16, training takes two thirds of that. The constant part is
# for label words and the overhead of a step.
SCORED_SECONDS: Final = 2e-3
SCORED_SECONDS_PER_TOKEN: Final = 1.4e-4
TRAINED_SECONDS: Final = 6.5e-3
TRAINED_SECONDS_PER_TOKEN: Final = 2.4e-4  # including padding


@dataclass(frozen=True, slots=True)
class Passes:
    """Numbers of rows that go through the model, summed over candidates and orders of batches.

    Args:
        scored: forward only.
        trained: forward and backward.
    """

    scored: float = 0.0
    trained: float = 0.0

    def seconds(self, tokens: float) -> float:
        """Return the estimated seconds for rows of this many tokens."""
        scored = SCORED_SECONDS + SCORED_SECONDS_PER_TOKEN * tokens
        return self.scored * scored + self.trained * (TRAINED_SECONDS + TRAINED_SECONDS_PER_TOKEN * tokens)
