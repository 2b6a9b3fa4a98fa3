"""The hypernetwork of HyperFormer++ (arXiv 2106.04489, eqs. 6-8): one for all places of a stack."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import torch
from torch import Tensor, nn

from onboard.model.adapter import AdapterWeights
from onboard.model.hypernetwork import POSITIONS, Hypernetwork
from onboard.model.initialisation import reset_linears

CONDITIONING_EPS = 1e-6

PROJECTOR = "task_hypernet.task_embeding_generator"  # the authors' spelling
STACK_PREFIX = "{stack}.adapter_layers_hyper_net."
# the authors' name under STACK_PREFIX for each name in a StackHypernetwork
_SHARED_NAMES = {
    "layer_embeddings": "layer_id_embeddings.weight",
    "position_embeddings": "adapters_block_type.weight",
    "projector_in": f"{PROJECTOR}.0",
    "projector_out": f"{PROJECTOR}.2",
    "norm": "LayerNorm",
    "down": "down_sampler_hyper_net.weight_generator.0",
    "down_bias": "down_sampler_hyper_net.bias_generator.0",
    "up": "up_sampler_hyper_net.weight_generator.0",
    "up_bias": "up_sampler_hyper_net.bias_generator.0",
    "gamma": "post_layernorm_hypernet.weight_generator",
    "beta": "post_layernorm_hypernet.bias_generator",
}


class StackHypernetwork(nn.Module):
    """The hypernetwork of one stack.

    I = LN(W₂ · relu(W₁ · [z; l_i; p_j])) (eq. 8); D, b_D, U, b_U, γ and β are linear in I (eqs. 6-7), with biases.

    Args:
        d_model: h.
        layers: L.
        bottleneck: b.
        task_embedding_size: t.
        projector_width: e.
        conditioning_size: c.
    """

    def __init__(
        self,
        *,
        d_model: int,
        layers: int,
        bottleneck: int,
        task_embedding_size: int,
        projector_width: int,
        conditioning_size: int,
    ) -> None:
        super().__init__()
        self.d_model, self.layers, self.bottleneck = d_model, layers, bottleneck
        self.layer_embeddings = nn.Parameter(torch.empty(layers, task_embedding_size))
        self.position_embeddings = nn.Parameter(torch.empty(POSITIONS, task_embedding_size))
        self.projector_in = nn.Linear(3 * task_embedding_size, projector_width)
        self.projector_out = nn.Linear(projector_width, conditioning_size)
        self.norm = nn.LayerNorm(conditioning_size, eps=CONDITIONING_EPS)
        self.down = nn.Linear(conditioning_size, bottleneck * d_model)
        self.down_bias = nn.Linear(conditioning_size, bottleneck)
        self.up = nn.Linear(conditioning_size, d_model * bottleneck)
        self.up_bias = nn.Linear(conditioning_size, d_model)
        self.gamma = nn.Linear(conditioning_size, d_model)
        self.beta = nn.Linear(conditioning_size, d_model)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Initialize like the authors: weights N(0, 0.01²), biases 0, layer and position embeddings N(0, 1)."""
        nn.init.normal_(self.layer_embeddings)
        nn.init.normal_(self.position_embeddings)
        self.norm.reset_parameters()
        reset_linears(self)

    def conditioning(self, z: Tensor) -> Tensor:
        """Return I of every task, layer and position: (T, t) → (T, L, 2, c)."""
        grid = (z.shape[0], self.layers, POSITIONS, -1)
        joined = torch.cat(
            [
                z[:, None, None].expand(grid),
                self.layer_embeddings[None, :, None].expand(grid),
                self.position_embeddings[None, None].expand(grid),
            ],
            dim=-1,
        )  # (T, L, 2, 3t)
        conditioning: Tensor = self.norm(self.projector_out(torch.relu(self.projector_in(joined))))
        return conditioning

    def forward(self, z: Tensor) -> AdapterWeights:
        """Generate weights (T, L, 2, …) from (T, t): one product per kind, over tasks, layers and positions."""
        conditioning = self.conditioning(z)  # (T, L, 2, c)
        matrix = (z.shape[0], self.layers, POSITIONS)
        return AdapterWeights(
            down=self.down(conditioning).view(*matrix, self.bottleneck, self.d_model),
            down_bias=self.down_bias(conditioning),
            up=self.up(conditioning).view(*matrix, self.d_model, self.bottleneck),
            up_bias=self.up_bias(conditioning),
            gamma=self.gamma(conditioning),
            beta=self.beta(conditioning),
        )


class HyperFormerPlusPlus(Hypernetwork):
    """HyperFormer++: one `StackHypernetwork` per stack; the stacks only share the task embedding.

    Args:
        task_embedding_size: t.
        projector_width: e.
        conditioning_size: c; by default the task embedding's size.
        sizes: d_model, encoder_layers, decoder_layers and bottleneck, as in `Hypernetwork`.
    """

    METHOD: ClassVar[str] = "hyperformer++"
    TITLE: ClassVar[str] = "HyperFormer++"
    EMBEDDING_SIZE: ClassVar[int] = 64
    OFFICIAL_SWITCHES: ClassVar[Mapping[str, bool]] = {
        "train_task_embeddings": False, "unique_hyper_net": False, "efficient_unique_hyper_net": True,
    }  # fmt: skip

    def __init__(
        self,
        *,
        task_embedding_size: int = EMBEDDING_SIZE,
        projector_width: int = 128,
        conditioning_size: int | None = None,
        **sizes: int,
    ) -> None:
        super().__init__(
            task_embedding_size=task_embedding_size,
            projector_width=projector_width,
            conditioning_size=task_embedding_size if conditioning_size is None else conditioning_size,
            **sizes,
        )

    def stack(self, layers: int) -> nn.Module:
        """Return the hypernetwork of a stack of `layers` blocks: (T, t) → AdapterWeights."""
        stack_sizes = {name: size for name, size in self.sizes.items() if not name.endswith("_layers")}
        return StackHypernetwork(layers=layers, **stack_sizes)

    def shared(self, z: Tensor) -> Tensor:
        """Return the task embeddings unchanged: (T, t) → (T, t)."""
        return z

    def official_views(self) -> dict[str, Tensor]:
        """Map `encoder.norm.weight` to `encoder.adapter_layers_hyper_net.LayerNorm.weight`."""
        views = {}
        for name, value in self.state_dict().items():
            stack, ours, *field = name.split(".")
            views[".".join([STACK_PREFIX.format(stack=stack) + _SHARED_NAMES[ours], *field])] = value
        return views
