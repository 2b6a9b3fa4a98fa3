"""PHM-Adapter (a baseline of arXiv 2106.04647): adapters with D and U as sums of n Kronecker products."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar

from torch import Tensor, nn

from onboard.model.kronecker import kronecker_sum
from onboard.model.methods.adapter_low_rank import glorot
from onboard.model.methods.adapter_shaped import AdapterShaped, AdapterStack

RULE_STD = 1e-4


class KroneckerStack(AdapterStack):
    """Dᵀ = Σ_i A_i ⊗ B_i with a separate A (n, n, n) per layer and B (n, h/n, b/n), and Uᵀ likewise.

    Args:
        sizes: includes n.
    """

    OFFICIAL: ClassVar[Mapping[str, str]] = {
        "down_rule": "down_sampler.phm_rule", "down_fast": "down_sampler.W", "down_bias": "down_sampler.b",
        "up_rule": "up_sampler.phm_rule", "up_fast": "up_sampler.W", "up_bias": "up_sampler.b",
    }  # fmt: skip

    def __init__(self, *args: Any, **sizes: Any) -> None:
        super().__init__(*args, **sizes)
        n = self.sizes["n"]
        wide, narrow = self.d_model // n, self.bottleneck // n
        self.down_rule, self.up_rule = self.parameter(n, n, n), self.parameter(n, n, n)
        self.down_fast, self.up_fast = self.parameter(n, wide, narrow), self.parameter(n, narrow, wide)
        for rule, fast in ((self.down_rule, self.down_fast), (self.up_rule, self.up_fast)):
            nn.init.normal_(rule, std=RULE_STD)
            glorot(fast)

    def matrices(self) -> tuple[Tensor, Tensor]:
        """Return the sums, transposed from input-output to output-input."""
        return kronecker_sum(self.down_rule, self.down_fast).mT, kronecker_sum(self.up_rule, self.up_fast).mT


class PhmAdapter(AdapterShaped):
    """Adapters from sums of Kronecker products after self-attention and feed-forward of every block."""

    METHOD: ClassVar[str] = "phm-adapter"
    TITLE: ClassVar[str] = "PHM-Adapter"
    LEARNING_RATE: ClassVar[float] = 3e-3
    INITIALISATION: ClassVar[str] = (
        "A from N(0, 0.0001²), B uniform by Glorot with gain √2, biases at 0, the T5's norms as they are."
    )
    DEFAULTS: ClassVar[Mapping[str, Any]] = {"reduction_factor": 32, "n": 4}
    STACK: ClassVar[type[AdapterStack]] = KroneckerStack

    def sizes(self) -> dict[str, int]:
        """Return n, which must divide h and b."""
        return {
            "n": self.divisor("n", math.gcd(self.d_model, self.bottleneck), "both the model's width and the bottleneck")
        }
