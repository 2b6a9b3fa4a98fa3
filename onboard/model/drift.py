"""How far generated weights move when their hypernetwork changes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import torch
from torch import Tensor

_LEAST: Final = 1e-8  # ‖·‖² below which a tensor counts as zero, such as biases of a method without biases


def relative_drift(before: Sequence[Tensor], after: Sequence[Tensor]) -> Tensor:
    """Return ‖after − before‖² / ‖before‖² of each task, averaged over tensors: (T,).

    Follows the output regularizer of von Oswald et al. (arXiv 1906.00695). It is relative per tensor, because the layer
    norm after U makes U's scale irrelevant.

    Args:
        before, after: the tensors of T tasks, each (T, …), in the same order and on one device.
    """
    shares = [_squared(new - old) / _squared(old).clamp(min=_LEAST) for old, new in zip(before, after, strict=True)]
    return torch.stack(shares).mean(0)


def _squared(weights: Tensor) -> Tensor:
    """Return ‖·‖² of each task (T,)."""
    return weights.flatten(1).square().sum(1)
