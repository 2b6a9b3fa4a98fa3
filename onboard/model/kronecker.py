"""Sums of Kronecker products, H = Σ_i A_i ⊗ B_i (PHM layers, arXiv 2102.08597; Compacter, arXiv 2106.04647, eq. 5).

Shapes: n summands, rule A (n, n, n), fast weights B (n, p, q), so H is (n·p, n·q) and a layer computes x · H. With
Compacter's rank one, B_i = left_i · right_i with left (n, p, 1) and right (n, 1, q).
"""

from __future__ import annotations

import torch
from torch import Tensor


def kronecker_sum(rule: Tensor, fast: Tensor) -> Tensor:
    """Return H, for any number of layers at once.

    Args:
        rule: (..., n, n, n); without leading dimensions one A is shared by all layers.
        fast: (..., n, p, q).

    Returns:
        (..., n·p, n·q).
    """
    blocks = torch.einsum("...nij,...npq->...ipjq", rule, fast)  # (..., n, p, n, q)
    return blocks.flatten(-4, -3).flatten(-2, -1)
