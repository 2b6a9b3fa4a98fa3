"""How embeddings are moved that are trained side by side."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Steps:
    """How embeddings are moved.

    Args:
        learning_rate: of Adam; inputs of so few numbers want far more than weights do.
        falling: whether the rate falls linearly to 0, or stays.
        averaged_share: the result is the mean of z over this last share of the steps.
        norm_per_root: bound of ‖z‖ as a multiple of √t; a large z drowns layer and position ids in the conditioning.
    """

    learning_rate: float
    falling: bool = False
    averaged_share: float = 0.25
    norm_per_root: float = 2.0
