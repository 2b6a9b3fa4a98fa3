"""Singular value decomposition."""

from __future__ import annotations

from typing import Final

import numpy as np

_SHORTEST: Final = 1e-12  # squared, relative to the largest


def decomposed(x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return u (n, r), ascending s (r,), and v (p, r) of x (n, p) = u·diag(s)·vᵀ, from the smaller of xxᵀ and xᵀx.

    That takes a third of the time of an SVD. Singular values below a millionth of the largest are dropped: they are
    negligible for any ridge.
    """
    wide = x.shape[0] <= x.shape[1]
    squares, vectors = np.linalg.eigh(x @ x.T if wide else x.T @ x)
    there = squares > _SHORTEST * squares[-1]
    s, own = np.sqrt(squares[there]), vectors[:, there]
    other = (x.T if wide else x) @ own / s
    return (own, s, other) if wide else (other, s, own)
