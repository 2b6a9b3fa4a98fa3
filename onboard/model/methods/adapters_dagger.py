"""Adapters† (arXiv 2106.04489): adapters with a layer norm inside that all tasks share, as HyperFormer's repository."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import torch
from torch import Tensor, nn

from onboard.errors import InputError
from onboard.model.hypernetwork import GeneratedAdapters
from onboard.model.methods.adapter_shaped import AdapterStack
from onboard.model.methods.adapters import Adapters, DenseStack

_SHARED = ("gamma", "beta")


class NormedStack(DenseStack):
    """y ← y + LN_{γ,β}(U · gelu(D · y + b_D) + b_U) (eq. 3); β starts at 0."""

    OFFICIAL: ClassVar[Mapping[str, str]] = {}
    NORMED: ClassVar[bool] = True

    def __init__(self, *args: Any, **sizes: Any) -> None:
        super().__init__(*args, **sizes)
        self.gamma, self.beta = self.parameter(self.d_model), self.parameter(self.d_model)
        nn.init.ones_(self.gamma)  # as the authors have it; `AdaptersDagger` knows better for few rows
        nn.init.zeros_(self.beta)

    def norm(self) -> tuple[Tensor, Tensor]:
        """The parameters themselves."""
        return self.gamma, self.beta


class AdaptersDagger(Adapters):
    """Adapters with a layer norm. A task that is learned alone has one of its own; several share theirs by `beside`.

    What is stored of a task is whole in either case. The authors let γ start at 1, where every adapter adds noise of
    unit variance at first, more than a small backbone bears (docs/results/ablations.md): here it starts at the setting
    `gamma_start`, 0 unless it is given.
    """

    METHOD: ClassVar[str] = "adapters-dagger"
    TITLE: ClassVar[str] = "Adapters†"
    INITIALISATION: ClassVar[str] = (
        "D and U from N(0, 0.01²), γ at the setting gamma_start, β and biases at 0, the T5's norms as they are."
    )
    DEFAULTS: ClassVar[Mapping[str, Any]] = {"reduction_factor": 32, "gamma_start": 0}
    STACK: ClassVar[type[AdapterStack]] = NormedStack

    def __init__(self, backbone: Any, **settings: Any) -> None:
        super().__init__(backbone, **settings)
        start = self.settings["gamma_start"]
        if not isinstance(start, int | float) or isinstance(start, bool) or not 0 <= start <= 1:
            raise InputError("gamma-start-wrong", method=self.TITLE, start=start)
        for stack in (self.encoder, self.decoder):
            nn.init.constant_(stack.get_parameter("gamma"), float(start))

    @torch.no_grad()
    def start_at(self, adapters: GeneratedAdapters) -> Self:
        """Take over what a hypernetwork makes of one embedding (T = 1); the T5's norms stay as they are.

        Raises:
            InputError: they have another bottleneck.
        """
        bottleneck = adapters.encoder.down.shape[-2]
        if bottleneck != self.bottleneck:
            factor = self.d_model // bottleneck
            raise InputError("reduction-factor-differs", bottleneck=bottleneck, wanted=self.bottleneck, factor=factor)
        for stack, made in ((self.encoder, adapters.encoder), (self.decoder, adapters.decoder)):
            for name, tensor in made._asdict().items():
                stack.get_parameter(name).copy_(tensor[0])
        return self

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
