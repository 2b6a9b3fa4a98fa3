"""Adapters† (arXiv 2106.04489): adapters with a layer norm inside that all tasks share, as HyperFormer's repository."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

from torch import Tensor, nn

from onboard.model.methods.adapter_shaped import AdapterStack
from onboard.model.methods.adapters import Adapters, DenseStack

_SHARED = ("gamma", "beta")


class NormedStack(DenseStack):
    """y ← y + LN_{γ,β}(U · gelu(D · y + b_D) + b_U) (eq. 3); γ starts at 1 and β at 0."""

    OFFICIAL: ClassVar[Mapping[str, str]] = {}
    NORMED: ClassVar[bool] = True

    def __init__(self, *args: Any, **sizes: Any) -> None:
        super().__init__(*args, **sizes)
        self.gamma, self.beta = self.parameter(self.d_model), self.parameter(self.d_model)
        nn.init.ones_(self.gamma)
        nn.init.zeros_(self.beta)

    def norm(self) -> tuple[Tensor, Tensor]:
        """The parameters themselves."""
        return self.gamma, self.beta


class AdaptersDagger(Adapters):
    """Adapters with a layer norm. A task that is learned alone has one of its own; several share theirs by `beside`.

    What is stored of a task is whole in either case.
    """

    METHOD: ClassVar[str] = "adapters-dagger"
    TITLE: ClassVar[str] = "Adapters†"
    INITIALISATION: ClassVar[str] = "D and U from N(0, 0.01²), γ at 1, β and biases at 0, the T5's norms as they are."
    STACK: ClassVar[type[AdapterStack]] = NormedStack

    def beside(self, other: AdaptersDagger) -> Self:
        """Share the other task's layer norms and T5 norms from now on: parameters of both, trained by both.

        Raises:
            ValueError: the other was made for a backbone of other sizes.
        """
        if other.norms.shape != self.norms.shape:
            raise ValueError(f"norms of shape {tuple(other.norms.shape)}, not {tuple(self.norms.shape)}")
        self.norms = other.norms
        for stack in ("encoder", "decoder"):
            for name in _SHARED:
                setattr(self.get_submodule(stack), name, other.get_parameter(f"{stack}.{name}"))
        return self

    def official_places(self) -> dict[str, tuple[str, Any]]:
        """None: they are of HyperFormer's repository, not of Compacter's."""
        return {}
