"""Parts of a stock T5 that methods use: its norms, places for biases, its matrices."""

from __future__ import annotations

from typing import Any

from torch import nn

from onboard.errors import InputError

HEAD = "lm_head"
_FINAL = "final_layer_norm"


def require_t5(backbone: Any) -> None:
    """Raise InputError unless the module is an encoder-decoder T5 as built by transformers."""
    stacks = [getattr(getattr(backbone, stack, None), "block", None) for stack in ("encoder", "decoder")]
    if not all(stacks) or not hasattr(backbone, HEAD):
        raise no_t5(backbone)


def no_t5(backbone: Any) -> InputError:
    """Return the error for another kind of module."""
    return InputError("not-an-encoder-decoder", name=type(backbone).__name__)


def layers_of(backbone: Any) -> dict[str, int]:
    """Return L of each stack."""
    return {"encoder": len(backbone.encoder.block), "decoder": len(backbone.decoder.block)}


def norms_of(backbone: Any) -> dict[str, nn.Module]:
    """Return every T5 RMSNorm by name, in model order: 5L + 2 for L + L layers, h numbers each."""
    return {name: module for name, module in backbone.named_modules() if name.endswith("layer_norm")}


def biased_of(backbone: Any) -> dict[str, int]:
    """Return the places of BitFit's biases with their sizes: every linear layer and norm except the two final norms.

    Raises:
        InputError: a linear layer of the backbone already has a bias.
    """
    places = {}
    for name, module in backbone.named_modules():
        if isinstance(module, nn.Linear):
            if module.bias is not None:
                raise InputError("backbone-has-bias", name=name)
            places[name] = module.out_features
        elif name.endswith("layer_norm") and not name.endswith(_FINAL):
            places[name] = backbone.config.d_model
    return places


def matrices_of(backbone: Any) -> dict[str, nn.Parameter]:
    """Return every two-dimensional parameter by name, a tied one once: linear layers, embeddings, position biases."""
    return {name: parameter for name, parameter in backbone.named_parameters() if parameter.dim() == 2}
