"""The bootstrap of rows that belong together."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def draws_of_groups(groups: Sequence[np.ndarray], draws: int) -> list[np.ndarray]:
    """Row indices of each draw: groups with replacement, and rows with replacement within each; always the same."""
    rng = np.random.default_rng(0)
    return [
        np.concatenate(
            [rng.choice(groups[index], len(groups[index])) for index in rng.integers(0, len(groups), len(groups))]
        )
        for _ in range(draws)
    ]
