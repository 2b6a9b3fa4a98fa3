"""Adapter-LowRank (a baseline of arXiv 2106.04647): adapters with D and U of rank one."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar

from torch import Tensor, nn

from onboard.model.methods.adapter_shaped import AdapterShaped, AdapterStack

GLOROT_GAIN = math.sqrt(2)


class LowRankStack(AdapterStack):
    """D = (left · right)ᵀ with left (h, 1) and right (1, b), and U likewise; Glorot initialization with gain √2."""

    OFFICIAL: ClassVar[Mapping[str, str]] = {
        "down_left": "down_sampler.W_left", "down_right": "down_sampler.W_right", "down_bias": "down_sampler.b",
        "up_left": "up_sampler.W_left", "up_right": "up_sampler.W_right", "up_bias": "up_sampler.b",
    }  # fmt: skip

    def __init__(self, *args: Any, **sizes: Any) -> None:
        super().__init__(*args, **sizes)
        front, wide, narrow = self.factors()
        self.down_left, self.down_right = self.parameter(*front, wide, 1), self.parameter(*front, 1, narrow)
        self.up_left, self.up_right = self.parameter(*front, narrow, 1), self.parameter(*front, 1, wide)
        for factor in (self.down_left, self.down_right, self.up_left, self.up_right):
            glorot(factor)

    def factors(self) -> tuple[tuple[int, ...], int, int]:
        """Return the leading dimensions of a factor, and the lengths of the factors of h and of b."""
        return (), self.d_model, self.bottleneck

    def matrices(self) -> tuple[Tensor, Tensor]:
        """Return the products of the factors, transposed from input-output to output-input."""
        return (self.down_left @ self.down_right).mT, (self.up_left @ self.up_right).mT


class AdapterLowRank(AdapterShaped):
    """Adapters of rank one after self-attention and feed-forward of every block."""

    METHOD: ClassVar[str] = "adapter-low-rank"
    TITLE: ClassVar[str] = "Adapter-LowRank"
    LEARNING_RATE: ClassVar[float] = 3e-3
    INITIALISATION: ClassVar[str] = "Factors uniform by Glorot with gain √2, biases at 0, the T5's norms as they are."
    DEFAULTS: ClassVar[Mapping[str, Any]] = {"reduction_factor": 32}
    STACK: ClassVar[type[AdapterStack]] = LowRankStack


def glorot(stacked: nn.Parameter) -> None:
    """Initialize matrices that are stacked in one tensor, uniformly by Glorot with gain √2 over the last two
    dimensions.
    """
    fan_in, fan_out = stacked.shape[-2:]
    bound = GLOROT_GAIN * math.sqrt(6.0 / (fan_in + fan_out))
    nn.init.uniform_(stacked, -bound, bound)
