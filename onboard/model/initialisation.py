"""How weights start that several methods share: as the authors do (rabeehk/hyperformer), or at unit size."""

from __future__ import annotations

from torch import nn

WEIGHT_STD = 0.01


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


def is_projector(name: str) -> bool:
    """Whether a module or parameter of this name is of a projector: what makes I of z, whatever the method."""
    return "projector_" in name
