"""How far generated weights move when the hypernetwork that generates them does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import torch
from torch import Tensor

_LEAST: Final = 1e-8  # ‖·‖² of a tensor that is all but 0, as biases of a method that has none


def relative_drift(before: Sequence[Tensor], after: Sequence[Tensor]) -> Tensor:
    """‖after − before‖² / ‖before‖² of each task, the mean over the tensors: (T,).

    After the output regulariser of von Oswald et al. (arXiv 1906.00695). Relative per tensor, because the layer norm
    behind U makes U's scale irrelevant.

    Args:
        before, after: the tensors of T tasks, each (T, …), in the same order and on one device.
    """
    shares = [_squared(new - old) / _squared(old).clamp(min=_LEAST) for old, new in zip(before, after, strict=True)]
    return torch.stack(shares).mean(0)


def _squared(weights: Tensor) -> Tensor:
    """‖·‖² of each task (T,)."""
    return weights.flatten(1).square().sum(1)
