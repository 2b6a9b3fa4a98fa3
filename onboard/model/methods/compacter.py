"""Compacter and Compacter++ (Karimi Mahabadi et al., arXiv 2106.04647): shared A, fast weights of rank one."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from onboard.model.attach import FEED_FORWARD
from onboard.model.kronecker import kronecker_sum
from onboard.model.methods.adapter_low_rank import LowRankStack
from onboard.model.methods.adapter_shaped import AdapterStack
from onboard.model.methods.phm_adapter import RULE_STD, PhmAdapter


class RankOneStack(LowRankStack):
    """Dᵀ = Σ_i A_i ⊗ (left_i · right_i) with left (n, h/n, 1) and right (n, 1, b/n), and Uᵀ likewise; A is shared.

    Args:
        sizes: includes n.

    Attributes:
        rule: A (n, n, n), set by the module that shares it.
    """

    rule: nn.Parameter

    def factors(self) -> tuple[tuple[int, ...], int, int]:
        """Return n summands, each with an n-th of h and b."""
        n = self.sizes["n"]
        return (n,), self.d_model // n, self.bottleneck // n

    def matrices(self) -> tuple[Tensor, Tensor]:
        """Return the sums, transposed from input-output to output-input."""
        return (
            kronecker_sum(self.rule, self.down_left @ self.down_right).mT,
            kronecker_sum(self.rule, self.up_left @ self.up_right).mT,
        )


class Compacter(PhmAdapter):
    """Eq. 5 after self-attention and feed-forward of every block; one A (n, n, n) for all layers, down and up."""

    METHOD: ClassVar[str] = "compacter"
    TITLE: ClassVar[str] = "Compacter"
    INITIALISATION: ClassVar[str] = (
        "A from N(0, 0.0001²), factors uniform by Glorot with gain √2, biases at 0, the T5's norms as they are."
    )
    STACK: ClassVar[type[AdapterStack]] = RankOneStack

    def __init__(self, backbone: Any, **settings: Any) -> None:
        super().__init__(backbone, **settings)
        n = self.settings["n"]
        self.rule = nn.Parameter(torch.empty(n, n, n, device=self.device))
        nn.init.normal_(self.rule, std=RULE_STD)
        self.encoder.rule, self.decoder.rule = self.rule, self.rule

    def official_places(self) -> dict[str, tuple[str, Any]]:
        """Return the names of the adapters, and of A at the top level."""
        return {**super().official_places(), "phm_rule": ("rule", ...)}


class CompacterPlusPlus(Compacter):
    """Compacter after the feed-forward only."""

    METHOD: ClassVar[str] = "compacter++"
    TITLE: ClassVar[str] = "Compacter++"
    POSITIONS_USED: ClassVar[tuple[int, ...]] = (FEED_FORWARD,)
