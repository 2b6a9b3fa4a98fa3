"""Products with sums of Kronecker products that are never made; `onboard.model.kronecker` makes them."""

from __future__ import annotations

import torch
from torch import Tensor


def kronecker_product(x: Tensor, rule: Tensor, left: Tensor, right: Tensor) -> Tensor:
    """x · H of one layer whose fast weights are left · right, without ever making H or B.

    Args:
        x: (..., n·p).
        rule: (n, n, n).
        left: (n, p, k).
        right: (n, k, q).

    Returns:
        (..., n·q).
    """
    n, p, k = left.shape
    parts = x.reshape(*x.shape[:-1], n, p) @ left.transpose(0, 1).reshape(p, n * k)  # (..., n, n·k): block i, summand s
    mixed = torch.einsum(
        "...isk,sij->...jsk", parts.reshape(*parts.shape[:-1], n, k), rule
    )  # (..., n, n, k): block j, summand s
    return (mixed.flatten(-2) @ right.reshape(n * k, -1)).flatten(-2)
