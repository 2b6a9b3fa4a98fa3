"""What a row costs that goes through the model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

# Of a row on two cores with `mini`, in float32; where the CPU has bfloat16 a training takes two thirds of that. What
# does not grow with the tokens is the label words' share, and what each step costs beside its rows.
SCORED_SECONDS: Final = 2e-3
SCORED_SECONDS_PER_TOKEN: Final = 1.4e-4
TRAINED_SECONDS: Final = 6.5e-3
TRAINED_SECONDS_PER_TOKEN: Final = 2.4e-4  # with the padding


@dataclass(frozen=True, slots=True)
class Passes:
    """Rows that go through the model, those of a candidate or of an order of the batches counted on their own.

    Args:
        scored: forward only.
        trained: forward and back.
    """

    scored: float = 0.0
    trained: float = 0.0

    def seconds(self, tokens: float) -> float:
        """What they take, of so many tokens each."""
        scored = SCORED_SECONDS + SCORED_SECONDS_PER_TOKEN * tokens
        return self.scored * scored + self.trained * (TRAINED_SECONDS + TRAINED_SECONDS_PER_TOKEN * tokens)
