"""What all methods share that put a small bottleneck of their own after sub-layers, whatever D and U are made of."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from onboard.model.adapter import AdapterWeights
from onboard.model.attach import FEED_FORWARD, SELF_ATTENTION
from onboard.model.hypernetwork import POSITIONS, GeneratedAdapters
from onboard.model.methods.hyperformer import place_prefix
from onboard.model.t5_parts import layers_of
from onboard.model.task_module import TaskModule
from onboard.model.task_weights import OwnParts, TaskWeights

BOTH = (FEED_FORWARD, SELF_ATTENTION)


@dataclass(frozen=True)
class Places:
    """Where a stack of L blocks has adapters.

    Args:
        stack: "encoder" or "decoder".
        depth: L.
        layers: which of its blocks (L′).
        positions: which of the two positions (P′).
    """

    stack: str
    depth: int
    layers: tuple[int, ...]
    positions: tuple[int, ...]

    @property
    def grid(self) -> tuple[int, int]:
        """(L′, P′)."""
        return len(self.layers), len(self.positions)

    def spread(self, own: Tensor) -> Tensor:
        """(L′, P′, …) → (1, L, 2, …), zero where there is no adapter."""
        if self.grid == (self.depth, POSITIONS):
            return own[None]
        everywhere = own.new_zeros(self.depth, POSITIONS, *own.shape[2:])
        layers = torch.tensor(self.layers, device=own.device)[:, None]
        return everywhere.index_put((layers, torch.tensor(self.positions, device=own.device)), own)[None]

    def prefixes(self) -> dict[str, tuple[int, int]]:
        """The authors' prefix of every adapter → where it lies in (L′, P′)."""
        return {
            place_prefix(self.stack, layer, position): (row, column)
            for row, layer in enumerate(self.layers)
            for column, position in enumerate(self.positions)
        }


class AdapterStack(nn.Module, ABC):
    """The adapters of one stack: parameters with (L′, P′) in front, and how D and U are made of them.

    Args:
        places: where they sit.
        d_model: h.
        bottleneck: b.
        device: of the parameters.
        sizes: more of the method's own.

    Attributes:
        OFFICIAL: our parameter → what the authors' repository calls it, under the adapter's prefix.
        NORMED: whether the adapters have a layer norm.
    """

    OFFICIAL: ClassVar[Mapping[str, str]]
    NORMED: ClassVar[bool] = False

    def __init__(self, places: Places, d_model: int, bottleneck: int, device: torch.device, **sizes: int) -> None:
        super().__init__()
        self.places, self.d_model, self.bottleneck, self.sizes = places, d_model, bottleneck, sizes
        self._device = device
        self.down_bias, self.up_bias = self.parameter(bottleneck), self.parameter(d_model)
        nn.init.zeros_(self.down_bias)
        nn.init.zeros_(self.up_bias)

    def parameter(self, *shape: int) -> nn.Parameter:
        """A parameter (L′, P′, *shape), to be initialised."""
        return nn.Parameter(torch.empty(*self.places.grid, *shape, device=self._device))

    @abstractmethod
    def matrices(self) -> tuple[Tensor, Tensor]:
        """D (L′, P′, b, h) and U (L′, P′, h, b)."""

    def norm(self) -> tuple[Tensor, Tensor]:
        """γ and β, (L′, P′, h) each; of adapters without a layer norm they say nothing and take no memory."""
        shape = (*self.places.grid, self.d_model)
        return self.up_bias.new_ones(()).expand(shape), self.up_bias.new_zeros(()).expand(shape)

    def forward(self) -> AdapterWeights:
        """The adapters of one task for the whole stack, (1, L, 2) in front; zero where there is none."""
        down, up = self.matrices()
        parts = (down, self.down_bias, up, self.up_bias, *self.norm())
        return AdapterWeights(*map(self.places.spread, parts))


class AdapterShaped(TaskModule):
    """Bottleneck adapters of one task, and the T5's norms, which are trained beside them.

    Attributes:
        STACK: what D and U of a stack are made of.
        POSITIONS_USED: which positions of a block have an adapter.
    """

    STACK: ClassVar[type[AdapterStack]]
    POSITIONS_USED: ClassVar[tuple[int, ...]] = BOTH

    def __init__(self, backbone: Any, **settings: Any) -> None:
        super().__init__(backbone, **settings)
        self.d_model: int = backbone.config.d_model
        self.bottleneck = self.d_model // self.divisor("reduction_factor", self.d_model, "the width of the model")
        sizes = self.sizes()
        self.encoder, self.decoder = (
            self.STACK(
                Places(stack, depth, self.layers(stack, depth), self.POSITIONS_USED),
                self.d_model, self.bottleneck, self.device, **sizes,
            )
            for stack, depth in layers_of(backbone).items()
        )  # fmt: skip
        self.norms = self.own_norms(backbone)

    def sizes(self) -> dict[str, int]:
        """What the stacks are told beside h and b. Raises InputError as the class."""
        return {}

    def layers(self, stack: str, depth: int) -> tuple[int, ...]:  # noqa: ARG002 (AdapterDrop asks it)
        """Which blocks of a stack of `depth` blocks have adapters. Raises InputError as the class."""
        return tuple(range(depth))

    def weights(self) -> TaskWeights:
        """The adapters of both stacks, and the task's norms."""
        adapters = GeneratedAdapters(self.encoder(), self.decoder())
        return TaskWeights(adapters, (OwnParts(normed=self.STACK.NORMED, norms=self.norms),))

    def official_places(self) -> dict[str, tuple[str, Any]]:
        """`encoder.block.0.layer.0.adapter_controller.adapters.{task}.down_sampler.…` of every adapter, and norms."""
        named = {
            f"{prefix}adapters.{{task}}.{theirs}": (f"{stack}.{ours}", place)
            for stack in ("encoder", "decoder")
            for prefix, place in self.get_submodule(stack).places.prefixes().items()  # type: ignore[union-attr,operator]  # of AdapterStack
            for ours, theirs in self.STACK.OFFICIAL.items()
        }
        return named | self.official_norms()
