"""How many numbers HyperFormer and HyperFormer++ train: the closed forms, and counting without memory."""

from __future__ import annotations

from typing import Any

import torch

from onboard.model.backbone import norm_parameters
from onboard.model.hypernetwork import POSITIONS, Hypernetwork
from onboard.model.methods import new_hypernetwork
from onboard.model.methods.hyperformer_plus_plus import HyperFormerPlusPlus


def closed_form(
    *,
    d_model: int,
    encoder_layers: int,
    decoder_layers: int,
    bottleneck: int,
    tasks: int,
    task_embedding_size: int = 64,
    projector_width: int = 128,
    conditioning_size: int | None = None,
) -> int:
    """Trained parameters of HyperFormer++: hypernetworks of both stacks, task embeddings, and every T5 RMSNorm.

    For L layers in each stack and c = t it is 2·[(3t+1)e + (e+1)t + 2t + (L+2)t + (t+1)(2hb+3h+b)] + T·t + (5L+2)h.
    """
    h, b, t, e = d_model, bottleneck, task_embedding_size, projector_width
    c = t if conditioning_size is None else conditioning_size

    def stack(layers: int) -> int:
        projector = (3 * t + 1) * e + (e + 1) * c + 2 * c
        return projector + (layers + POSITIONS) * t + _generators(h, b, c)

    return stack(encoder_layers) + stack(decoder_layers) + tasks * t + _norms(h, encoder_layers, decoder_layers)


def plain_closed_form(
    *,
    d_model: int,
    encoder_layers: int,
    decoder_layers: int,
    bottleneck: int,
    tasks: int,
    task_embedding_size: int = 512,
    projector_width: int = 128,
    conditioning_size: int = 64,
) -> int:
    """The same of plain HyperFormer: one projector, and generators for each of the 2 · 2L places.

    For L layers in each stack it is (t+1)e + (e+1)c + 4L·(c+1)(2hb+3h+b) + T·t + (5L+2)h.
    """
    h, t, e, c = d_model, task_embedding_size, projector_width, conditioning_size
    places = (encoder_layers + decoder_layers) * POSITIONS
    hypernetworks = (t + 1) * e + (e + 1) * c + places * _generators(h, bottleneck, c)
    return hypernetworks + tasks * t + _norms(h, encoder_layers, decoder_layers)


def _generators(h: int, b: int, c: int) -> int:
    """Linear maps with biases from I to D, b_D, U, b_U, γ and β."""
    return (c + 1) * (2 * h * b + 3 * h + b)


def _norms(h: int, encoder_layers: int, decoder_layers: int) -> int:
    return (2 * encoder_layers + 1 + 3 * decoder_layers + 1) * h


def counted(backbone: Any, hypernetwork: Hypernetwork, tasks: int) -> int:
    """The same by counting: hypernetwork, T embeddings, T5 norms. Works on the meta device."""
    trained = [*hypernetwork.parameters(), *norm_parameters(backbone)]
    return sum(p.numel() for p in trained) + tasks * hypernetwork.sizes["task_embedding_size"]


def on_meta(config: Any, bottleneck: int, method: str = HyperFormerPlusPlus.METHOD) -> tuple[Any, Hypernetwork]:
    """A T5 of a configuration and a method's hypernetwork with default sizes, without memory for either.

    Args:
        config: a T5Config.
        bottleneck: b.
        method: "hyperformer++" or "hyperformer".
    """
    from transformers import T5ForConditionalGeneration

    with torch.device("meta"):
        backbone = T5ForConditionalGeneration(config)
        sizes = {
            "d_model": config.d_model,
            "encoder_layers": config.num_layers,
            "decoder_layers": config.num_decoder_layers,
            "bottleneck": bottleneck,
        }
        hypernetwork = new_hypernetwork(method, sizes)
    return backbone, hypernetwork
