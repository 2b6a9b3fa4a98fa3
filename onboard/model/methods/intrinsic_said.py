"""Intrinsic-SAID (Aghajanyan et al., arXiv 2012.13255): move the whole T5 along few random directions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import nn

from onboard.errors import InputError
from onboard.model.fastfood import Fastfood
from onboard.model.t5_parts import matrices_of
from onboard.model.task_module import TaskModule
from onboard.model.task_weights import OwnParts, TaskWeights


class IntrinsicSaid(TaskModule):
    """W_i = W_i⁰ + λ_i · Fastfood_i(d) for every matrix of the backbone; d and one λ per matrix are trained.

    The projection follows from the setting `seed`. It is neither materialized as a matrix nor stored.
    """

    METHOD: ClassVar[str] = "intrinsic-said"
    TITLE: ClassVar[str] = "Intrinsic-SAID"
    LEARNING_RATE: ClassVar[float] = 0.03
    INITIALISATION: ClassVar[str] = "d at 0, every λ at 1: the backbone as it is."
    DEFAULTS: ClassVar[Mapping[str, Any]] = {"dimension": 20_000, "seed": 0}
    MIXES: ClassVar[bool] = False

    def __init__(self, backbone: Any, **settings: Any) -> None:
        super().__init__(backbone, **settings)
        self._initial = matrices_of(backbone)  # the backbone's parameters, read whenever weights are computed
        dimension, most = self.count("dimension"), sum(matrix.numel() for matrix in self._initial.values())
        if dimension > most:
            raise InputError("dimension-too-large", method=self.TITLE, dimension=dimension, most=most)
        seed = self.settings["seed"]
        if not isinstance(seed, int) or isinstance(seed, bool) or seed < 0:
            raise InputError("method-seed-wrong", method=self.TITLE, seed=seed)
        self._projections = {
            name: Fastfood(seed, name, dimension, matrix.numel()) for name, matrix in self._initial.items()
        }
        self.direction = nn.Parameter(torch.zeros(dimension, device=self.device))
        self.scales = nn.Parameter(torch.ones(len(self._initial), device=self.device))

    @property
    def kept_bytes(self) -> int:
        """As `TaskModule.kept_bytes`, including the random numbers of its projections."""
        return super().kept_bytes + sum(projection.nbytes for projection in self._projections.values())

    def weights(self) -> TaskWeights:
        """Return replacements for all matrices, without adapters."""
        matrices = {
            name: matrix.detach() + scale * self._projections[name](self.direction).view(matrix.shape)
            for (name, matrix), scale in zip(self._initial.items(), self.scales, strict=True)
        }
        return TaskWeights(None, (OwnParts(normed=False, matrices=matrices),))
