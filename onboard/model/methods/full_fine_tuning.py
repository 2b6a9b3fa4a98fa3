"""Full fine-tuning: every parameter of the T5 is task-specific. For comparison only; it publishes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from torch import nn

from onboard.model.task_module import TaskModule
from onboard.model.task_weights import OwnParts, TaskWeights


class FullFineTuning(TaskModule):
    """A copy of the whole backbone that replaces it for this task. The shared backbone does not change."""

    METHOD: ClassVar[str] = "full-fine-tuning"
    TITLE: ClassVar[str] = "Full fine-tuning"
    LEARNING_RATE: ClassVar[float] = 3e-4
    INITIALISATION: ClassVar[str] = "The backbone as it is."
    DEFAULTS: ClassVar[Mapping[str, Any]] = {}
    PUBLISHES: ClassVar[bool] = False
    MIXES: ClassVar[bool] = False

    def __init__(self, backbone: Any, **settings: Any) -> None:
        super().__init__(backbone, **settings)
        parameters = dict(backbone.named_parameters())
        self._names = tuple(parameters)
        self.tensors = nn.ParameterList(nn.Parameter(p.detach().float().clone()) for p in parameters.values())

    def weights(self) -> TaskWeights:
        """Return replacements for all parameters, without adapters."""
        matrices = dict(zip(self._names, self.tensors, strict=True))
        return TaskWeights(None, (OwnParts(normed=False, matrices=matrices),))
