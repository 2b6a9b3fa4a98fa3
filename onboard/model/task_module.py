"""The base class of methods that train and store task-specific parameters, without a hypernetwork."""

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

    Parameters are float32 on the backbone's device. The backbone itself is not part of the module.

    Args:
        backbone: a stock T5 that the task is learned on.
        settings: values that replace `DEFAULTS`.

    Raises:
        InputError: not a T5, a T5 that the method does not support, an unknown setting, or an unsuitable size.

    Attributes:
        METHOD: the method's name in files and on the command line.
        TITLE: its name in sentences.
        LEARNING_RATE: of AdamW, as its authors train it; for few rows see `onboard.train.settings.FEW_STEPS_RATES`.
        INITIALISATION: a sentence on the initial parameters.
        DEFAULTS: its settings, as in the papers.
        PUBLISHES: whether a task learned with it can be stored as a version.
        MIXES: whether its rows can share a batch with tasks of other methods; false if it changes the backbone's
            matrices.
        settings: the settings, from which the module can be rebuilt on the same backbone.
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
        """Return the weights that the model uses for this task (T = 1); differentiable in the parameters."""

    def official_places(self) -> dict[str, tuple[str, Any]]:
        """Return, for each name in the authors' repository (rabeehk/compacter), our parameter and the index in it.

        Names contain {task} for the task's name. Empty if the repository does not have the method.
        """
        return {}

    def official_views(self, task: str) -> dict[str, Tensor]:
        """Return a view into our tensor for each of the authors' names: read it to export, fill it to import."""
        parameters = dict(self.named_parameters())
        places = self.official_places()
        return {name.format(task=task): parameters[ours].detach()[at] for name, (ours, at) in places.items()}

    def official_gradients(self, task: str) -> dict[str, Tensor]:
        """Return the gradients by the authors' names, for parameters that have one."""
        gradients = {name: parameter.grad for name, parameter in self.named_parameters()}
        return {
            name.format(task=task): gradient[at]
            for name, (ours, at) in self.official_places().items()
            if (gradient := gradients[ours]) is not None
        }

    @property
    def trained(self) -> int:
        """The number of trained parameters; works on the meta device, too."""
        return sum(parameter.numel() for parameter in self.parameters())

    @property
    def stored_bytes(self) -> int:
        """Size of a stored task in bytes, without the file's header; 0 if it cannot be published."""
        if not self.PUBLISHES:
            return 0
        return sum(parameter.numel() * parameter.element_size() for parameter in self.parameters())

    @property
    def kept_bytes(self) -> int:
        """Approximate size in memory once used, without the backbone."""
        return sum(parameter.nbytes for parameter in self.parameters())

    def state(self) -> dict[str, Tensor]:
        """Return the tensors of a version by name, on the CPU. With `METHOD` and `settings` they define the task.

        Raises:
            ConflictError: the method cannot be published.
        """
        if not self.PUBLISHES:
            raise ConflictError("method-only-for-comparison", method=self.TITLE)
        return {name: parameter.detach().cpu().clone() for name, parameter in self.named_parameters()}

    def restore(self, tensors: Mapping[str, Tensor]) -> Self:
        """Load stored tensors. If any of them is wrong, nothing changes.

        Raises:
            DamagedError: a tensor is missing, unexpected, of another shape or dtype, or not finite; `data["tensor"]`
                names it.
        """
        parameters = dict(self.named_parameters())
        for name in sorted(parameters.keys() ^ tensors.keys()):
            trouble = "lacks the tensor" if name in parameters else "holds a tensor that the method has not:"
            raise DamagedError("stored-tensors-differ", tensor=name, method=self.TITLE, trouble=trouble)
        for name, value in tensors.items():
            if value.shape != parameters[name].shape:
                raise DamagedError(
                    "stored-tensor-shape-differs",
                    tensor=name,
                    method=self.TITLE,
                    shape=tuple(value.shape),
                    expected=tuple(parameters[name].shape),
                )
            if not value.is_floating_point() or not value.isfinite().all():
                raise DamagedError("stored-tensor-not-finite", tensor=name, method=self.TITLE)
        with torch.no_grad():
            for name, value in tensors.items():
                parameters[name].copy_(value)
        return self

    def count(self, name: str) -> int:
        """Return a setting that is a count. Raises InputError unless it is a positive whole number."""
        value = self.settings[name]
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise InputError(
                "method-setting-not-positive", name=name, method=self.TITLE, value=value, default=self.DEFAULTS[name]
            )
        return value

    def divisor(self, name: str, of: int, what: str) -> int:
        """Return a setting that must divide a size.

        Raises:
            InputError: it does not; the remedy lists the divisors.
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
        """Return a copy of the T5's norms (5L + 2, h) as task-specific parameters, in the order of `norms_of`."""
        self._norm_names = tuple(norms_of(backbone))
        weights = [module.get_parameter("weight").detach() for module in norms_of(backbone).values()]
        return nn.Parameter(torch.stack(weights).float())

    def official_norms(self) -> dict[str, tuple[str, Any]]:
        """Return the entries of `official_places` for the norms."""
        return {f"{name}.weight": ("norms", place) for place, name in enumerate(self._norm_names)}
