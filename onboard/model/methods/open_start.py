"""An initialization of HyperFormer++ with a linear effect of the task embedding on norms and biases
(docs/decisions/0016).
"""

from __future__ import annotations

import torch
from torch import nn

from onboard.model.hypernetwork import Hypernetwork
from onboard.model.methods.hyperformer_plus_plus import StackHypernetwork

_CARRIED = 4.0  # standard deviations of z from the corner of the ReLU
_STEADY = 30.0  # large enough that z hardly changes the divisor of the layer norm
_WIDE_STD = 0.03


def open_to_embeddings(hypernetwork: Hypernetwork) -> None:
    """Initialize HyperFormer++ so that the task embedding has a large, linear effect on the adapters.

    With other initializations, z rotates the conditioning on the sphere of its layer norm, and a new z changes the
    adapters' norms and biases much less than an unseen kind of task requires (docs/decisions/0016). Here

    - the first t hidden units of the projector hold Q·z + 4, with Q orthogonal, beyond the corner of the ReLU, and the
      next layer maps them to R·z; the other units use z, layer and position as in `scale_projectors`;
    - two numbers before the layer norm are 30 and -30 and have the weight 0 after it: its divisor hardly depends on z
      any more, and its other weights undo it;
    - the weights that generate γ, β, b_D and b_U start at N(0, 0.03²).

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
    other_units = first.out_features - size
    if other_units < 1:
        raise ValueError(f"a projector of width {first.out_features} cannot hold z of {size} numbers and more")
    nn.init.normal_(first.weight, std=first.in_features**-0.5)
    nn.init.zeros_(first.weight[:size])
    nn.init.orthogonal_(first.weight[:size, :size])
    nn.init.zeros_(first.bias)
    first.bias[:size] = _CARRIED
    nn.init.normal_(last.weight, std=(2.0 / other_units) ** 0.5)
    nn.init.orthogonal_(last.weight[:, :size])
    last.bias.copy_(-_CARRIED * last.weight[:, :size].sum(1))
    last.weight[:2] = 0.0
    last.bias[:2] = torch.tensor([_STEADY, -_STEADY])
    stack.norm.weight.fill_(_STEADY * (2.0 / last.out_features) ** 0.5)
    stack.norm.weight[:2] = 0.0
