"""Adapters† (arXiv 2106.04489): adapters with a layer norm that tasks can share, as in HyperFormer's repository."""

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
        nn.init.ones_(self.gamma)  # the authors' value; `AdaptersDagger` replaces it for few rows
        nn.init.zeros_(self.beta)

    def norm(self) -> tuple[Tensor, Tensor]:
        """Return the parameters."""
        return self.gamma, self.beta


class AdaptersDagger(Adapters):
    """Adapters with a layer norm. A task that is trained alone has separate norms; several can share them with
    `beside`.

    In both cases, each task is stored completely. The authors initialize γ with 1. Then every adapter first adds noise
    of unit variance, which is too much for a small backbone (bench/results/ablations.md). Here, γ starts at the setting
    `gamma_start`, by default 0.
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
        """Copy the adapters that a hypernetwork generates for one embedding (T = 1). The T5's norms do not change.

        Raises:
            InputError: the bottlenecks differ.
        """
        bottleneck = adapters.encoder.down.shape[-2]
        if bottleneck != self.bottleneck:
            factor = self.d_model // bottleneck
            raise InputError("reduction-factor-differs", bottleneck=bottleneck, wanted=self.bottleneck, factor=factor)
        for stack, generated in ((self.encoder, adapters.encoder), (self.decoder, adapters.decoder)):
            for name, tensor in generated._asdict().items():
                stack.get_parameter(name).copy_(tensor[0])
        return self

    def beside(self, other: AdaptersDagger) -> Self:
        """Share the other task's layer norms and T5 norms, as parameters of both modules, trained by both.

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
        """Return nothing: these adapters are from HyperFormer's repository, not from Compacter's."""
        return {}
