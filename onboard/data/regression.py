"""Regression in the text-to-text form: a value is one of 21 buckets with numbers as words, read by expectation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

BUCKETS: Final = 21
_MOST_DECIMALS: Final = 12  # a narrower range is spelled by the buckets' indices
_SPELLING_ERROR: Final = 0.1  # of a bucket's width


@dataclass(frozen=True)
class Buckets:
    """Equally spaced values between low and high, both included (T5 rounded STS-B to steps of 0.2, arXiv 1910.10683).

    Args:
        low: value of the first bucket.
        high: value of the last; above `low`.
        count: number of buckets, at least 2.

    Raises:
        ValueError: the range is empty.
    """

    low: float
    high: float
    count: int = BUCKETS

    def __post_init__(self) -> None:
        if not self.low < self.high or self.count < 2:
            raise ValueError(f"no buckets between {self.low} and {self.high}")

    @property
    def width(self) -> float:
        """Distance between neighbors."""
        return (self.high - self.low) / (self.count - 1)

    @cached_property
    def values(self) -> tuple[float, ...]:
        """Values of the buckets, (count,)."""
        return (*(self.low + index * self.width for index in range(self.count - 1)), self.high)

    @cached_property
    def words(self) -> tuple[str, ...]:
        """The values as distinct decimals, short but within a tenth of a bucket's width, (count,)."""
        for decimals in range(_MOST_DECIMALS + 1):
            words = tuple(_shorn(f"{value:.{decimals}f}") for value in self.values)
            errors = (abs(float(word) - value) for word, value in zip(words, self.values, strict=True))
            if len(set(words)) == self.count and max(errors) <= _SPELLING_ERROR * self.width:
                return words
        return tuple(str(index) for index in range(self.count))

    def soft_target(self, value: float) -> tuple[float, ...]:
        """Return weights (count,) of the two neighbors of a value, so that their expectation is the value.

        Values beyond the range are moved to its end.
        """
        position = (min(max(value, self.low), self.high) - self.low) / self.width
        left = min(int(position), self.count - 2)
        share = min(position - left, 1.0)
        weights = [0.0] * self.count
        weights[left], weights[left + 1] = 1.0 - share, share
        return tuple(weights)

    def expectation(self, probabilities: Sequence[float]) -> float:
        """Return the mean value under the buckets' probabilities (count,), which sum to one."""
        return sum(p * value for p, value in zip(probabilities, self.values, strict=True))


def _shorn(decimal: str) -> str:
    text = decimal.rstrip("0").rstrip(".") if "." in decimal else decimal
    return "0" if text in ("-0", "") else text
