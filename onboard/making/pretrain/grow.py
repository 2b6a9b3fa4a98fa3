"""Grow a backbone: a larger one that computes the same function and can learn more.

As in Net2Net (Chen, Goodfellow and Shlens 2016, arXiv 1511.05641), the function is preserved: new states of the
residual stream are zero, new hidden units and heads have no output weights yet, and new layers add nothing to the
stream. Their input weights are random, so gradients reach all of them within a few steps.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import torch
from torch import Tensor

from onboard.errors import InputError
from onboard.making.pretrain.recipe import Growth

_READS: Final = (".q.weight", ".k.weight", ".v.weight", ".wi.weight", ".wi_0.weight", ".wi_1.weight")


@torch.no_grad()
def grown(backbone: Any, growth: Growth, seed: int) -> Any:
    """Return a larger T5 that computes the same as `backbone`, up to rounding; frozen, on the CPU.

    Args:
        backbone: frozen, on the CPU.

    Raises:
        InputError: a size is smaller than the backbone's; the error names it.
    """
    old, sizes = backbone.config, growth.model_dump(exclude_none=True)
    for field, size in sizes.items():
        if size < getattr(old, field):
            raise InputError(
                "backbone-cannot-shrink",
                field=f"backbone.grow.{field}",
                setting=field,
                size=size,
                present=getattr(old, field),
            )
    config = type(old)(**{**old.to_dict(), **sizes})
    larger = type(backbone)(config)
    generator, existing = torch.Generator().manual_seed(seed), dict(backbone.named_parameters())
    shrunk = (old.d_model / config.d_model) ** 0.5  # a norm divides by the mean square of more numbers
    for name, parameter in larger.named_parameters():
        parameter.copy_(_grown(name, parameter.shape, existing, shrunk, generator))
    if getattr(config, "scale_decoder_outputs", False):  # by d_model^-0.5, which the preceding norm compensates
        larger.decoder.final_layer_norm.weight.div_(shrunk)
    return larger.requires_grad_(False).eval()


def _grown(
    name: str, shape: torch.Size, known: Mapping[str, Tensor], shrunk: float, generator: torch.Generator
) -> Tensor:
    """Return one parameter: existing values in its first rows and columns, and values without effect in the others."""
    before = known.get(name)
    if "layer_norm" in name:
        whole = torch.ones(shape)
        if before is not None:
            whole[: len(before)] = before
        return whole * shrunk
    whole = torch.zeros(shape)
    if name.endswith(_READS):
        like = before if before is not None else _last_like(name, known)
        whole = torch.randn(shape, generator=generator) * like.square().mean().sqrt()
    if before is not None:
        whole[tuple(slice(size) for size in before.shape)] = before
    return whole


def _last_like(name: str, known: Mapping[str, Tensor]) -> Tensor:
    """Return the corresponding matrix in the last existing layer of its stack."""
    stack, _, _, place = name.split(".", 3)  # encoder.block.6.layer.0.SelfAttention.q.weight
    return [
        matrix
        for parameter_name, matrix in known.items()
        if parameter_name.startswith(stack) and parameter_name.endswith(place)
    ][-1]
