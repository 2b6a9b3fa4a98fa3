"""The hypernetworks of plain HyperFormer (arXiv 2106.04489, section 2.3, eqs. 5-7), as in the paper's tables.

The authors' code contains a third variant, which is not implemented here: the configuration that they released as
HyperFormer (`unique_hyper_net`). In it, each stack has one set of hypernetworks for all layers with a layer embedding,
as in HyperFormer++, but separate sets for feed-forward and self-attention instead of a position embedding: I = LN(h([z;
l_i])), z of 64. Its parameter counts differ from the paper's tables, and its checkpoints are refused by name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import torch
from torch import Tensor, nn

from onboard.model.adapter import AdapterWeights
from onboard.model.hypernetwork import POSITIONS, Hypernetwork
from onboard.model.initialisation import reset_linears

PLAIN_PROJECTOR = "task_embedding_controller.task_hyper_net.task_embeding_generator"  # the authors' spelling
# the authors' name under `place_prefix` for each name in a PlacesHypernetwork
_PLACE_NAMES = {
    "down": "meta_down_sampler.weight_generator.0",
    "down_bias": "meta_down_sampler.bias_generator.0",
    "up": "meta_up_sampler.weight_generator.0",
    "up_bias": "meta_up_sampler.bias_generator.0",
    "gamma": "post_layernorm_hypernet.weight_generator",
    "beta": "post_layernorm_hypernet.bias_generator",
}
_PROJECTOR_PARTS = {"projector_in": "0", "projector_out": "2"}


class PlacesHypernetwork(nn.Module):
    """The hypernetworks of one stack, separate for every layer and position.

    D, b_D, U, b_U, γ and β are linear in I (eqs. 6-7), with biases. All places of a stack use the same I, so their
    weights are stacked in one matrix per kind, ordered by layer, then position.

    Args:
        d_model: h.
        layers: L.
        bottleneck: b.
        conditioning_size: c.
    """

    def __init__(self, *, d_model: int, layers: int, bottleneck: int, conditioning_size: int) -> None:
        super().__init__()
        self.d_model, self.layers, self.bottleneck = d_model, layers, bottleneck
        places = layers * POSITIONS
        self.down = nn.Linear(conditioning_size, places * bottleneck * d_model)
        self.down_bias = nn.Linear(conditioning_size, places * bottleneck)
        self.up = nn.Linear(conditioning_size, places * d_model * bottleneck)
        self.up_bias = nn.Linear(conditioning_size, places * d_model)
        self.gamma = nn.Linear(conditioning_size, places * d_model)
        self.beta = nn.Linear(conditioning_size, places * d_model)
        reset_linears(self)

    def forward(self, conditioning: Tensor) -> AdapterWeights:
        """Generate weights (T, L, 2, …) from (T, c): one product per kind, over tasks, layers and positions."""
        grid = (conditioning.shape[0], self.layers, POSITIONS)
        return AdapterWeights(
            down=self.down(conditioning).view(*grid, self.bottleneck, self.d_model),
            down_bias=self.down_bias(conditioning).view(*grid, self.bottleneck),
            up=self.up(conditioning).view(*grid, self.d_model, self.bottleneck),
            up_bias=self.up_bias(conditioning).view(*grid, self.d_model),
            gamma=self.gamma(conditioning).view(*grid, self.d_model),
            beta=self.beta(conditioning).view(*grid, self.d_model),
        )


class PlainHyperFormer(Hypernetwork):
    """Plain HyperFormer: I = h_I(z) = W₂ · relu(W₁ · z) (eq. 5), without a layer norm, one projector for both stacks.

    Args:
        task_embedding_size: t.
        projector_width: e.
        conditioning_size: c.
        sizes: d_model, encoder_layers, decoder_layers and bottleneck, as in `Hypernetwork`.
    """

    METHOD: ClassVar[str] = "hyperformer"
    TITLE: ClassVar[str] = "HyperFormer"
    EMBEDDING_SIZE: ClassVar[int] = 512
    OFFICIAL_SWITCHES: ClassVar[Mapping[str, bool]] = {
        "train_task_embeddings": True, "unique_hyper_net": False, "efficient_unique_hyper_net": False,
    }  # fmt: skip

    def __init__(
        self,
        *,
        task_embedding_size: int = EMBEDDING_SIZE,
        projector_width: int = 128,
        conditioning_size: int = 64,
        **sizes: int,
    ) -> None:
        super().__init__(
            task_embedding_size=task_embedding_size,
            projector_width=projector_width,
            conditioning_size=conditioning_size,
            **sizes,
        )
        self.projector_in = nn.Linear(task_embedding_size, projector_width)
        self.projector_out = nn.Linear(projector_width, conditioning_size)
        reset_linears(self)

    def stack(self, layers: int) -> nn.Module:
        """Return the hypernetworks of a stack of `layers` blocks: (T, c) → AdapterWeights."""
        stack_sizes = {name: self.sizes[name] for name in ("d_model", "bottleneck", "conditioning_size")}
        return PlacesHypernetwork(layers=layers, **stack_sizes)

    def shared(self, z: Tensor) -> Tensor:
        """Return I of every task: (T, t) → (T, c)."""
        conditioning: Tensor = self.projector_out(torch.relu(self.projector_in(z)))
        return conditioning

    def official_views(self) -> dict[str, Tensor]:
        """Map `encoder.down.weight` to one view per place,
        `encoder.block.0.layer.0.adapter_controller.meta_down_sampler.…`.
        """
        views = {}
        for name, value in self.state_dict().items():
            owner, *rest = name.split(".")
            if owner in _PROJECTOR_PARTS:
                views[".".join([PLAIN_PROJECTOR, _PROJECTOR_PARTS[owner], *rest])] = value
                continue
            ours, field = rest
            places = POSITIONS * self.sizes[f"{owner}_layers"]
            for place, view in enumerate(value.unflatten(0, (places, -1)).unbind(0)):
                layer, position = divmod(place, POSITIONS)
                views[f"{place_prefix(owner, layer, position)}{_PLACE_NAMES[ours]}.{field}"] = view
        return views


def place_prefix(stack: str, layer: int, position: int) -> str:
    """Return e.g. `encoder.block.3.layer.1.adapter_controller.`, feed-forward (position 0) of encoder layer 3."""
    feed_forward = 1 if stack == "encoder" else 2
    return f"{stack}.block.{layer}.layer.{0 if position else feed_forward}.adapter_controller."
