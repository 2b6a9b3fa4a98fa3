"""A bootstrap of grouped rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def draws_of_groups(groups: Sequence[np.ndarray], draws: int) -> list[np.ndarray]:
    """Return row indices of each draw: groups with replacement, and rows with replacement within each;
    deterministic.
    """
    rng = np.random.default_rng(0)
    return [
        np.concatenate(
            [rng.choice(groups[index], len(groups[index])) for index in rng.integers(0, len(groups), len(groups))]
        )
        for _ in range(draws)
    ]
