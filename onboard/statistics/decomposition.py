"""The singular values of a matrix, and their directions."""

from __future__ import annotations

from typing import Final

import numpy as np

_SHORTEST: Final = 1e-12  # squared, of the longest


def decomposed(x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """u (n, r), s (r,), ascending, and v (p, r) of x (n, p) = u·diag(s)·vᵀ, by the smaller one of xxᵀ and xᵀx.

    That takes a third of an SVD's time. Directions shorter than a millionth of the longest are left out: beside any
    ridge they say nothing.
    """
    wide = x.shape[0] <= x.shape[1]
    squares, vectors = np.linalg.eigh(x @ x.T if wide else x.T @ x)
    there = squares > _SHORTEST * squares[-1]
    s, own = np.sqrt(squares[there]), vectors[:, there]
    other = (x.T if wide else x) @ own / s
    return (own, s, other) if wide else (other, s, own)
