"""The base of all methods that add a small bottleneck after sublayers, whatever D and U consist of."""

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
class AdapterPlaces:
    """The places of adapters in a stack of L blocks.

    Args:
        stack: "encoder" or "decoder".
        depth: L.
        layers: its blocks with adapters (L′).
        positions: the positions with adapters (P′).
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
        """Expand (L′, P′, …) to (1, L, 2, …), zero where there is no adapter."""
        if self.grid == (self.depth, POSITIONS):
            return own[None]
        everywhere = own.new_zeros(self.depth, POSITIONS, *own.shape[2:])
        layers = torch.tensor(self.layers, device=own.device)[:, None]
        return everywhere.index_put((layers, torch.tensor(self.positions, device=own.device)), own)[None]

    def prefixes(self) -> dict[str, tuple[int, int]]:
        """Return the index in (L′, P′) of every adapter by the authors' prefix."""
        return {
            place_prefix(self.stack, layer, position): (row, column)
            for row, layer in enumerate(self.layers)
            for column, position in enumerate(self.positions)
        }


class AdapterStack(nn.Module, ABC):
    """The adapters of one stack: parameters with (L′, P′) in front, and the construction of D and U from them.

    Args:
        places: where the adapters are.
        d_model: h.
        bottleneck: b.

    Attributes:
        OFFICIAL: the authors' name of each parameter, after the adapter's prefix.
        NORMED: whether the adapters have a layer norm.
    """

    OFFICIAL: ClassVar[Mapping[str, str]]
    NORMED: ClassVar[bool] = False

    def __init__(
        self, places: AdapterPlaces, d_model: int, bottleneck: int, device: torch.device, **sizes: int
    ) -> None:
        super().__init__()
        self.places, self.d_model, self.bottleneck, self.sizes = places, d_model, bottleneck, sizes
        self._device = device
        self.down_bias, self.up_bias = self.parameter(bottleneck), self.parameter(d_model)
        nn.init.zeros_(self.down_bias)
        nn.init.zeros_(self.up_bias)

    def parameter(self, *shape: int) -> nn.Parameter:
        """Return an uninitialized parameter (L′, P′, *shape)."""
        return nn.Parameter(torch.empty(*self.places.grid, *shape, device=self._device))

    @abstractmethod
    def matrices(self) -> tuple[Tensor, Tensor]:
        """Return D (L′, P′, b, h) and U (L′, P′, h, b)."""

    def norm(self) -> tuple[Tensor, Tensor]:
        """Return γ and β, (L′, P′, h) each; without a layer norm they are unused views that take no memory."""
        shape = (*self.places.grid, self.d_model)
        return self.up_bias.new_ones(()).expand(shape), self.up_bias.new_zeros(()).expand(shape)

    def forward(self) -> AdapterWeights:
        """Return the adapters of one task for the whole stack, (1, L, 2, ...); zero where there is none."""
        down, up = self.matrices()
        parts = (down, self.down_bias, up, self.up_bias, *self.norm())
        return AdapterWeights(*map(self.places.spread, parts))


class AdapterShaped(TaskModule):
    """Bottleneck adapters of one task, trained together with the T5's norms.

    Attributes:
        STACK: class of the adapters of a stack.
        POSITIONS_USED: the positions of a block with an adapter.
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
                AdapterPlaces(stack, depth, self.layers(stack, depth), self.POSITIONS_USED),
                self.d_model, self.bottleneck, self.device, **sizes,
            )
            for stack, depth in layers_of(backbone).items()
        )  # fmt: skip
        self.norms = self.own_norms(backbone)

    def sizes(self) -> dict[str, int]:
        """Return additional sizes for the stacks. Raises InputError as the class."""
        return {}

    def layers(self, stack: str, depth: int) -> tuple[int, ...]:  # noqa: ARG002 (AdapterDrop asks it)
        """Return the blocks with adapters in a stack of `depth` blocks. Raises InputError as the class."""
        return tuple(range(depth))

    def weights(self) -> TaskWeights:
        """Return the adapters of both stacks, and the task's norms."""
        adapters = GeneratedAdapters(self.encoder(), self.decoder())
        return TaskWeights(adapters, (OwnParts(normed=self.STACK.NORMED, norms=self.norms),))

    def official_places(self) -> dict[str, tuple[str, Any]]:
        """Return `encoder.block.0.layer.0.adapter_controller.adapters.{task}.down_sampler.…` of every adapter, and
        norms.
        """
        named = {
            f"{prefix}adapters.{{task}}.{theirs}": (f"{stack}.{ours}", place)
            for stack in ("encoder", "decoder")
            for prefix, place in self.get_submodule(stack).places.prefixes().items()  # type: ignore[union-attr,operator]  # of AdapterStack
            for ours, theirs in self.STACK.OFFICIAL.items()
        }
        return named | self.official_norms()
