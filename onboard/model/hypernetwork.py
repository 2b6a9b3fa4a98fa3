"""The hypernetwork of HyperFormer++ (arXiv 2106.04489, eqs. 6-8): task embedding in, adapters of both stacks out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor, nn

from onboard.model.adapter import AdapterWeights

POSITIONS = 2  # 0 = feed-forward, 1 = self-attention
WEIGHT_STD = 0.01
CONDITIONING_EPS = 1e-6
_CARRIED = 4.0  # deviations of z from the corner of the ReLU
_STEADY = 30.0  # beside it the numbers of z hardly change the length that the layer norm divides by
_WIDE_STD = 0.03


class GeneratedAdapters(NamedTuple):
    """The adapters of T tasks for both stacks; the fields' leading dimensions are (T, L, 2)."""

    encoder: AdapterWeights
    decoder: AdapterWeights

    @property
    def tasks(self) -> int:
        """T, the number of tasks."""
        return self.encoder.down.shape[0]

    def to(self, device: torch.device, dtype: torch.dtype) -> GeneratedAdapters:
        """The same adapters on another device or in another type; differentiable."""
        return GeneratedAdapters(self.encoder.to(device, dtype), self.decoder.to(device, dtype))

    def of(self, tasks: Sequence[int]) -> GeneratedAdapters:
        """The adapters of these tasks, in this order; a task may be named again or left out."""
        chosen = torch.tensor(tasks, device=self.encoder.down.device)
        return GeneratedAdapters(self.encoder.select(chosen), self.decoder.select(chosen))

    @staticmethod
    def joined(parts: Sequence[GeneratedAdapters], order: Sequence[int] | None = None) -> GeneratedAdapters:
        """The tasks of several of them as one batch: what different hypernetworks made goes through the model together.

        Args:
            parts: at least one, of the same sizes, on one device and of one type.
            order: for each place of the result, the place among all tasks of `parts`, one after the other; a task may
                be named again or left out. None keeps them as they come.

        Raises:
            ValueError: there are no parts.
        """
        if not parts:
            raise ValueError("there are no adapters to join")
        if order is None and len(parts) == 1:
            return parts[0]
        encoder, decoder = (
            AdapterWeights(*map(torch.cat, zip(*stacks, strict=True))) for stacks in zip(*parts, strict=True)
        )
        joined = GeneratedAdapters(encoder, decoder)
        return joined if order is None else joined.of(order)


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
        """Weights N(0, 0.01²), biases 0, layer and position embeddings N(0, 1), as the authors do."""
        nn.init.normal_(self.layer_embeddings)
        nn.init.normal_(self.position_embeddings)
        self.norm.reset_parameters()
        reset_linears(self)

    def conditioning(self, z: Tensor) -> Tensor:
        """I of every task, layer and position: (T, t) → (T, L, 2, c)."""
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
        """(T, t) → weights with (T, L, 2) in front: one product per kind, over tasks, layers and positions."""
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


class Hypernetwork(nn.Module):
    """Task embedding in, adapters of both stacks out: HyperFormer++, and what every other method has in common with it.

    One `StackHypernetwork` per stack; only the task embedding is shared by the two. Another method overrides `METHOD`,
    `stack` and, when the stacks share more than the task embedding, `shared`.

    Args:
        d_model: h of the backbone.
        encoder_layers: L of the encoder.
        decoder_layers: L of the decoder.
        bottleneck: b.
        task_embedding_size: t.
        projector_width: e.
        conditioning_size: c; the task embedding's size when None.

    Attributes:
        METHOD: the method's name in files, recipes and bases.
        sizes: the arguments, which make the same hypernetwork again.
    """

    METHOD: ClassVar[str] = "hyperformer++"

    def __init__(
        self,
        *,
        d_model: int,
        encoder_layers: int,
        decoder_layers: int,
        bottleneck: int,
        task_embedding_size: int = 64,
        projector_width: int = 128,
        conditioning_size: int | None = None,
    ) -> None:
        super().__init__()
        self.sizes: dict[str, int] = {
            "d_model": d_model,
            "encoder_layers": encoder_layers,
            "decoder_layers": decoder_layers,
            "bottleneck": bottleneck,
            "task_embedding_size": task_embedding_size,
            "projector_width": projector_width,
            "conditioning_size": task_embedding_size if conditioning_size is None else conditioning_size,
        }
        self.encoder, self.decoder = self.stack(encoder_layers), self.stack(decoder_layers)

    def stack(self, layers: int) -> nn.Module:
        """What makes the adapters of a stack of `layers` blocks: (T, …) as `shared` gives it → AdapterWeights."""
        own = {name: size for name, size in self.sizes.items() if not name.endswith("_layers")}
        return StackHypernetwork(layers=layers, **own)

    def shared(self, z: Tensor) -> Tensor:
        """What both stacks get of the task embeddings: (T, t) → here the same."""
        return z

    def forward(self, z: Tensor) -> GeneratedAdapters:
        """(T, t) → the adapters of T tasks for both stacks.

        Raises:
            ValueError: z is not of shape (T, t).
        """
        size = self.sizes["task_embedding_size"]
        if z.dim() != 2 or z.shape[1] != size:
            raise ValueError(f"task embeddings must have shape (T, {size}), got {tuple(z.shape)}")
        shared = self.shared(z)
        return GeneratedAdapters(self.encoder(shared), self.decoder(shared))


def reset_linears(module: nn.Module) -> None:
    """Start the linear layers among the children as the authors do: weights N(0, 0.01²), biases 0."""
    for child in module.children():
        if isinstance(child, nn.Linear):
            nn.init.normal_(child.weight, std=WEIGHT_STD)
            nn.init.zeros_(child.bias)


def scale_projectors(hypernetwork: nn.Module) -> None:
    """Start the projectors' weights so that unit inputs give unit outputs (He et al., arXiv 1502.01852).

    The authors' 0.01 is less than what the optimiser moves in a few hundred steps: the biases take over, the layer norm
    behind enlarges them, and every task embedding gets the same conditioning.
    """
    for name, module in hypernetwork.named_modules():
        if is_projector(name) and isinstance(module, nn.Linear):
            gain = 2.0 if name.endswith("_out") else 1.0  # behind a ReLU half of the energy is gone
            nn.init.normal_(module.weight, std=(gain / module.in_features) ** 0.5)


def open_to_embeddings(hypernetwork: Hypernetwork) -> None:
    """Start HyperFormer++ so that the task embedding reaches the adapters linearly, and far.

    Elsewhere z turns the conditioning on the sphere that its layer norm makes, and a new z moves the adapters' norms
    and biases a small part of the way that an unseen kind of task asks for (docs/decisions/0016). Here

    - the first t hidden units of the projector hold Q·z + 4, with Q orthogonal, beyond the corner of the ReLU, and what
      follows turns them into R·z; the other units see z, layer and position as in `scale_projectors`;
    - two numbers before the layer norm are 30 and -30 and have the weight 0 behind it: what it divides by hardly
      depends on z any more, and its other weights undo it;
    - the weights that make γ, β, b_D and b_U start at N(0, 0.03²).

    Raises:
        ValueError: the hypernetwork is of another method, or its projector is not wider than z.
    """
    for stack in (hypernetwork.encoder, hypernetwork.decoder):
        if not isinstance(stack, StackHypernetwork):
            raise ValueError(f"{hypernetwork.METHOD} has no projector per stack to open")
        _open_projector(stack)
        for wide in (stack.gamma, stack.beta, stack.down_bias, stack.up_bias):
            nn.init.normal_(wide.weight, std=_WIDE_STD)


@torch.no_grad()
def _open_projector(stack: StackHypernetwork) -> None:
    first, last, size = stack.projector_in, stack.projector_out, stack.position_embeddings.shape[1]
    others = first.out_features - size
    if others < 1:
        raise ValueError(f"a projector of width {first.out_features} cannot hold z of {size} numbers and more")
    nn.init.normal_(first.weight, std=first.in_features**-0.5)
    nn.init.zeros_(first.weight[:size])
    nn.init.orthogonal_(first.weight[:size, :size])
    nn.init.zeros_(first.bias)
    first.bias[:size] = _CARRIED
    nn.init.normal_(last.weight, std=(2.0 / others) ** 0.5)
    nn.init.orthogonal_(last.weight[:, :size])
    last.bias.copy_(-_CARRIED * last.weight[:, :size].sum(1))
    last.weight[:2] = 0.0
    last.bias[:2] = torch.tensor([_STEADY, -_STEADY])
    stack.norm.weight.fill_(_STEADY * (2.0 / last.out_features) ** 0.5)
    stack.norm.weight[:2] = 0.0


def is_projector(name: str) -> bool:
    """Whether a module or parameter of this name is of a projector: what makes I of z, whatever the method."""
    return "projector_" in name
