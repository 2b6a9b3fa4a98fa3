"""What every method has in common that trains and stores a task's own parameters, without a hypernetwork."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import torch
from torch import Tensor, nn

from onboard.errors import ConflictError, DamagedError, InputError
from onboard.model.t5_parts import norms_of, require_t5
from onboard.model.task_weights import TaskWeights


class TaskModule(nn.Module, ABC):
    """The parameters of one task; the methods are in `onboard.model.methods`.

    Its parameters are float32 on the backbone's device. The backbone is looked at, and is no part of it.

    Args:
        backbone: a stock T5 that the task is learned on.
        settings: any of `DEFAULTS`, which hold for the others.

    Raises:
        InputError: not a T5, or one that the method does not support; no such setting, or a size that does not fit.

    Attributes:
        METHOD: the method's name in files and on the command line.
        TITLE: its name in sentences.
        LEARNING_RATE: of AdamW, as its authors train it; for few rows see `onboard.train.settings.FEW_STEPS_RATES`.
        INITIALISATION: how its parameters start, in a sentence.
        DEFAULTS: its settings, as the papers have them.
        PUBLISHES: whether a task learned with it can be stored as a version.
        MIXES: whether its rows may share a batch with tasks of other methods; not where it changes the backbone's own
            matrices.
        settings: the settings, which make the same module again on the same backbone.
    """

    METHOD: ClassVar[str]
    TITLE: ClassVar[str]
    LEARNING_RATE: ClassVar[float]
    INITIALISATION: ClassVar[str]
    DEFAULTS: ClassVar[Mapping[str, Any]]
    PUBLISHES: ClassVar[bool] = True
    MIXES: ClassVar[bool] = True

    def __init__(self, backbone: Any, **settings: Any) -> None:
        super().__init__()
        require_t5(backbone)
        if unknown := sorted(settings.keys() - self.DEFAULTS.keys()):
            raise InputError(
                "unknown-method-setting",
                method=self.TITLE,
                unknown=unknown[0],
                defaults=", ".join(self.DEFAULTS) or "none",
            )
        self.settings: dict[str, Any] = {**self.DEFAULTS, **settings}
        self.device: torch.device = backbone.device

    @abstractmethod
    def weights(self) -> TaskWeights:
        """What the model computes with for this task (T = 1); differentiable in the parameters."""

    def official_places(self) -> dict[str, tuple[str, Any]]:
        """The name that the authors' repository (rabeehk/compacter) gives a part → our parameter, and where in it.

        The task's own name stands in it as {task}. Empty where that repository has no name for it.
        """
        return {}

    def official_views(self, task: str) -> dict[str, Tensor]:
        """The authors' name of every part → a view into our tensor: read it to export, fill it to import."""
        own = dict(self.named_parameters())
        places = self.official_places()
        return {name.format(task=task): own[ours].detach()[at] for name, (ours, at) in places.items()}

    def official_gradients(self, task: str) -> dict[str, Tensor]:
        """The same of the gradients, of the parameters that have one."""
        own = {name: parameter.grad for name, parameter in self.named_parameters()}
        return {
            name.format(task=task): gradient[at]
            for name, (ours, at) in self.official_places().items()
            if (gradient := own[ours]) is not None
        }

    @property
    def trained(self) -> int:
        """How many numbers the task trains; counts on the meta device too."""
        return sum(parameter.numel() for parameter in self.parameters())

    @property
    def stored_bytes(self) -> int:
        """What a stored task takes in bytes, without the file's header; 0 where nothing is published."""
        if not self.PUBLISHES:
            return 0
        return sum(parameter.numel() * parameter.element_size() for parameter in self.parameters())

    @property
    def kept_bytes(self) -> int:
        """About what it takes in memory once it was asked, without the backbone."""
        return sum(parameter.nbytes for parameter in self.parameters())

    def state(self) -> dict[str, Tensor]:
        """The tensors that a version stores, by name, on the CPU; with `METHOD` and `settings` they are the task.

        Raises:
            ConflictError: the method publishes nothing.
        """
        if not self.PUBLISHES:
            raise ConflictError("method-only-for-comparison", method=self.TITLE)
        return {name: parameter.detach().cpu().clone() for name, parameter in self.named_parameters()}

    def restore(self, tensors: Mapping[str, Tensor]) -> Self:
        """Take over stored tensors; nothing is changed where one is wrong.

        Raises:
            DamagedError: a tensor is missing, one too many, of another shape or type, or holds what is no number;
                `data["tensor"]` names it.
        """
        own = dict(self.named_parameters())
        for name in sorted(own.keys() ^ tensors.keys()):
            what = "lacks the tensor" if name in own else "holds a tensor that the method has not:"
            raise DamagedError("stored-tensors-differ", tensor=name, method=self.TITLE, trouble=what)
        for name, value in tensors.items():
            if value.shape != own[name].shape:
                raise DamagedError(
                    "stored-tensor-shape-differs",
                    tensor=name,
                    method=self.TITLE,
                    shape=tuple(value.shape),
                    expected=tuple(own[name].shape),
                )
            if not value.is_floating_point() or not value.isfinite().all():
                raise DamagedError("stored-tensor-not-finite", tensor=name, method=self.TITLE)
        with torch.no_grad():
            for name, value in tensors.items():
                own[name].copy_(value)
        return self

    def count(self, name: str) -> int:
        """A setting that counts something. Raises InputError unless it is a whole number from 1 on."""
        value = self.settings[name]
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise InputError(
                "method-setting-not-positive", name=name, method=self.TITLE, value=value, default=self.DEFAULTS[name]
            )
        return value

    def divisor(self, name: str, of: int, what: str) -> int:
        """A setting that divides a size.

        Raises:
            InputError: it does not; the remedy lists those that do.
        """
        value = self.count(name)
        if of % value:
            divisors = ", ".join(str(number) for number in range(1, of + 1) if of % number == 0)
            raise InputError(
                "method-setting-not-divisor",
                name=name,
                method=self.TITLE,
                value=value,
                dimension=what,
                size=of,
                divisors=divisors,
            )
        return value

    def own_norms(self, backbone: Any) -> nn.Parameter:
        """The T5's norms, (5L + 2, h), to be trained on as the task's own; in the order of `norms_of`."""
        self._norm_names = tuple(norms_of(backbone))
        weights = [module.get_parameter("weight").detach() for module in norms_of(backbone).values()]
        return nn.Parameter(torch.stack(weights).float())

    def official_norms(self) -> dict[str, tuple[str, Any]]:
        """The part of `official_places` that own norms are."""
        return {f"{name}.weight": ("norms", place) for place, name in enumerate(self._norm_names)}
