"""Initial weights that several methods share: as in the authors' code (rabeehk/hyperformer), or at unit scale."""

from __future__ import annotations

from torch import nn

WEIGHT_STD = 0.01


def reset_linears(module: nn.Module) -> None:
    """Initialize the child linear layers like the authors: weights N(0, 0.01²), biases 0."""
    for child in module.children():
        if isinstance(child, nn.Linear):
            nn.init.normal_(child.weight, std=WEIGHT_STD)
            nn.init.zeros_(child.bias)


def scale_projectors(hypernetwork: nn.Module) -> None:
    """Initialize the projectors' weights so that unit inputs give unit outputs (He et al., arXiv 1502.01852).

    The authors' 0.01 is less than the change of a few hundred optimizer steps. Then biases dominate, the following
    layer norm amplifies them, and every task embedding gets the same conditioning.
    """
    for name, module in hypernetwork.named_modules():
        if is_projector(name) and isinstance(module, nn.Linear):
            gain = 2.0 if name.endswith("_out") else 1.0  # a ReLU removes half of the energy
            nn.init.normal_(module.weight, std=(gain / module.in_features) ** 0.5)


def is_projector(name: str) -> bool:
    """Return whether a module or parameter of this name belongs to a projector, which computes I from z."""
    return "projector_" in name
