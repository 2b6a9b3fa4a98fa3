"""How features of texts with one label differ from one another, whatever the task."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Spread:
    """In which directions features of texts with one label differ most, and how much less these are to count.

    Args:
        directions: (r, h), orthonormal rows.
        factors: (r,) what lengths along them are multiplied by, where every other direction stays as it is.
    """

    directions: np.ndarray
    factors: np.ndarray

    def evened(self, features: np.ndarray) -> np.ndarray:
        """Features (n, h or more), of whose first h columns these directions are scaled (a symmetric map)."""
        directions = self.directions.astype(np.float64)
        own, others = np.split(features, [directions.shape[1]], axis=1)
        along: np.ndarray = (own @ directions.T) * (self.factors - 1.0)
        return np.hstack([own + along @ directions, others])
