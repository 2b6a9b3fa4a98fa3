"""Adapters (Houlsby et al., arXiv 1902.00751), as in Compacter's repository: without an inner layer norm."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from torch import Tensor, nn

from onboard.model.initialisation import WEIGHT_STD
from onboard.model.methods.adapter_shaped import AdapterShaped, AdapterStack


class DenseStack(AdapterStack):
    """Dense D and U: y ← y + U · gelu(D · y + b_D) + b_U. Initialized with N(0, 0.01²), biases with 0."""

    OFFICIAL: ClassVar[Mapping[str, str]] = {
        "down": "down_sampler.weight", "down_bias": "down_sampler.bias",
        "up": "up_sampler.weight", "up_bias": "up_sampler.bias",
    }  # fmt: skip

    def __init__(self, *args: Any, **sizes: Any) -> None:
        super().__init__(*args, **sizes)
        self.down = self.parameter(self.bottleneck, self.d_model)
        self.up = self.parameter(self.d_model, self.bottleneck)
        nn.init.normal_(self.down, std=WEIGHT_STD)
        nn.init.normal_(self.up, std=WEIGHT_STD)

    def matrices(self) -> tuple[Tensor, Tensor]:
        """Return the parameters."""
        return self.down, self.up


class Adapters(AdapterShaped):
    """An adapter after self-attention and feed-forward of every block of both stacks."""

    METHOD: ClassVar[str] = "adapters"
    TITLE: ClassVar[str] = "Adapters"
    LEARNING_RATE: ClassVar[float] = 3e-4
    INITIALISATION: ClassVar[str] = "D and U from N(0, 0.01²), biases at 0, the T5's norms as they are."
    DEFAULTS: ClassVar[Mapping[str, Any]] = {"reduction_factor": 32}
    STACK: ClassVar[type[AdapterStack]] = DenseStack
