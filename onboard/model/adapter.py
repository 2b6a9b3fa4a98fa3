"""The adapter of HyperFormer++ (arXiv 2106.04489, eq. 3) as functions of its weights."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 (the name that every PyTorch reader knows)

LAYER_NORM_EPS = 1e-5  # of the adapter's layer norm; the authors use PyTorch's default


class AdapterWeights(NamedTuple):
    """Weights of adapters; `...` is (T, L, 2) for a stack, (T,) for one place of several tasks, () for one adapter."""

    down: Tensor  # (..., b, h)  D
    down_bias: Tensor  # (..., b)
    up: Tensor  # (..., h, b)  U
    up_bias: Tensor  # (..., h)
    gamma: Tensor  # (..., h)
    beta: Tensor  # (..., h)

    def to(self, device: torch.device, dtype: torch.dtype) -> AdapterWeights:
        """Return the weights on another device or with another dtype; differentiable."""
        return AdapterWeights(*(w.to(device, dtype) for w in self))

    def select(self, tasks: Tensor) -> AdapterWeights:
        """Return the weights of some tasks, (len(tasks), ...), by a LongTensor of indices into the first dimension."""
        return AdapterWeights(*(w.index_select(0, tasks) for w in self))

    def widened(self, bottleneck: int) -> AdapterWeights:
        """Return the same adapters with a larger b, padded with zeros, which contribute nothing because gelu(0) = 0."""
        more = bottleneck - self.down.shape[-2]
        if not more:
            return self
        return self._replace(
            down=F.pad(self.down, (0, 0, 0, more)),
            down_bias=F.pad(self.down_bias, (0, more)),
            up=F.pad(self.up, (0, more)),
        )

    def places(self) -> list[AdapterWeights]:
        """Return one entry per layer and position, in the order [2 * layer + position], from weights (T, L, 2, ...).

        With one task the entries have no task dimension, otherwise (T,). Unbinding once instead of indexing per layer
        gives autograd a single `stack` per tensor.
        """
        if self.down.shape[0] == 1:
            split = [w.flatten(0, 2).unbind(0) for w in self]  # 6 × 2L × (...)
        else:
            split = [w.flatten(1, 2).unbind(1) for w in self]  # 6 × 2L × (T, ...)
        return [AdapterWeights(*place) for place in zip(*split, strict=True)]


def adapt(y: Tensor, weights: AdapterWeights, normed: bool = True) -> Tensor:
    """Return y + LN_{γ,β}(U · gelu_tanh(D · y + b_D) + b_U), with the same adapter for all rows.

    Args:
        y: (B, S, h), a sublayer's output before dropout and skip connection.
        weights: one adapter, no leading dimensions.
        normed: False omits the layer norm: y + U · gelu_tanh(D · y + b_D) + b_U, as in Compacter's repository.

    Returns:
        (B, S, h).
    """
    inner = F.gelu(F.linear(y, weights.down, weights.down_bias), approximate="tanh")  # (B, S, b)
    outer = F.linear(inner, weights.up, weights.up_bias)  # (B, S, h)
    if not normed:
        return y + outer
    return y + F.layer_norm(outer, weights.gamma.shape, weights.gamma, weights.beta, LAYER_NORM_EPS)


def adapt_rows(y: Tensor, weights: AdapterWeights, rows: Tensor, normed: bool | Tensor = True) -> Tensor:
    """Like `adapt`, with an adapter per row: row i of y uses adapter rows[i].

    Args:
        y: (B, S, h).
        weights: the adapters of T tasks at one place, (T, ...).
        rows: (B,) LongTensor, the task of each row.
        normed: whether the adapters have a layer norm; (B, 1, 1) bool if rows differ.

    Returns:
        (B, S, h).
    """
    per_row = weights.select(rows)  # (B, ...)
    inner = torch.baddbmm(per_row.down_bias[:, None], y, per_row.down.transpose(1, 2))  # (B, S, b)
    outer = torch.baddbmm(
        per_row.up_bias[:, None], F.gelu(inner, approximate="tanh"), per_row.up.transpose(1, 2)
    )  # (B, S, h)
    if normed is False:
        return y + outer
    standard = F.layer_norm(outer, outer.shape[-1:], eps=LAYER_NORM_EPS)
    scaled = torch.addcmul(per_row.beta[:, None], standard, per_row.gamma[:, None])
    return y + (scaled if normed is True else torch.where(normed, scaled, outer))
