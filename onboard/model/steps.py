"""Optimizer settings for embeddings that are trained together."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Steps:
    """Optimizer settings for embeddings.

    Args:
        learning_rate: of Adam; much larger than for weights, because there are so few numbers.
        falling: whether the rate decays linearly to 0, or is constant.
        averaged_share: the result is the mean of z over this last share of the steps.
        norm_per_root: bound of ‖z‖ as a multiple of √t; a large z would dominate layer and position ids in the
            conditioning.
    """

    learning_rate: float
    falling: bool = False
    averaged_share: float = 0.25
    norm_per_root: float = 2.0
