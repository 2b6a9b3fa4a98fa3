"""Made-up words and texts for a tiny teacher."""

from __future__ import annotations

import numpy as np
import pytest

_FIRST, _LAST = ("bar", "den", "fil", "gor", "lum", "mar", "sol", "tan"), ("ten", "vik", "mon", "lak", "rus")


@pytest.fixture(scope="session")
def words() -> list[str]:
    """Forty words that the teacher has a piece for."""
    return [first + last for first in _FIRST for last in _LAST]


@pytest.fixture(scope="session")
def texts(words: list[str]) -> list[str]:
    """Texts of 2 to 13 of the words."""
    rng = np.random.default_rng(0)
    return [" ".join(rng.choice(words, int(rng.integers(2, 14)))) for _ in range(400)]
