"""BitFit (Ben Zaken et al., arXiv 2106.10199): biases, added to a T5 without any."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import accumulate
from typing import Any, ClassVar

import torch
from torch import nn

from onboard.model.t5_parts import biased_of
from onboard.model.task_module import TaskModule
from onboard.model.task_weights import OwnParts, TaskWeights


class BitFit(TaskModule):
    """A bias for every linear layer of both stacks and the head, and for every norm except the two final ones.

    They are concatenated in one vector, in the order of `biased_of`.
    """

    METHOD: ClassVar[str] = "bitfit"
    TITLE: ClassVar[str] = "BitFit"
    LEARNING_RATE: ClassVar[float] = 3e-4
    INITIALISATION: ClassVar[str] = "All biases at 0: the backbone as it is."
    DEFAULTS: ClassVar[Mapping[str, Any]] = {}

    def __init__(self, backbone: Any, **settings: Any) -> None:
        super().__init__(backbone, **settings)
        self._sizes = biased_of(backbone)
        self.biases = nn.Parameter(torch.zeros(sum(self._sizes.values()), device=self.device))

    def weights(self) -> TaskWeights:
        """Return the biases, without adapters."""
        return TaskWeights(None, (OwnParts(normed=False, biases=self.biases),))

    def official_places(self) -> dict[str, tuple[str, Any]]:
        """Return names such as `encoder.block.0.layer.0.SelfAttention.q.bias`."""
        ends = accumulate(self._sizes.values())
        return {
            f"{name}.bias": ("biases", slice(end - size, end))
            for (name, size), end in zip(self._sizes.items(), ends, strict=True)
        }
