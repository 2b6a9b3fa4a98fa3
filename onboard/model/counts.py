"""How many numbers HyperFormer++ trains: the closed form, and counting without memory."""

from __future__ import annotations

from typing import Any

import torch

from onboard.model.backbone import norm_parameters
from onboard.model.hypernetwork import Hypernetwork


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
    """Trained parameters: hypernetworks of both stacks, task embeddings, and every T5 RMSNorm.

    For L layers in each stack and c = t it is 2·[(3t+1)e + (e+1)t + 2t + (L+2)t + (t+1)(2hb+3h+b)] + T·t + (5L+2)h.
    """
    h, b, t, e = d_model, bottleneck, task_embedding_size, projector_width
    c = t if conditioning_size is None else conditioning_size

    def stack(layers: int) -> int:
        projector = (3 * t + 1) * e + (e + 1) * c + 2 * c
        return projector + (layers + 2) * t + (c + 1) * (2 * h * b + 3 * h + b)

    norms = (2 * encoder_layers + 1 + 3 * decoder_layers + 1) * h
    return stack(encoder_layers) + stack(decoder_layers) + tasks * t + norms


def counted(backbone: Any, hypernetwork: Hypernetwork, tasks: int) -> int:
    """The same by counting: hypernetwork, T embeddings, T5 norms. Works on the meta device."""
    trained = [*hypernetwork.parameters(), *norm_parameters(backbone)]
    return sum(p.numel() for p in trained) + tasks * hypernetwork.sizes["task_embedding_size"]


def on_meta(config: Any, bottleneck: int) -> tuple[Any, Hypernetwork]:
    """A T5 of a configuration and its hypernetwork with default sizes, without memory for either.

    Args:
        config: a T5Config.
        bottleneck: b.
    """
    from transformers import T5ForConditionalGeneration

    with torch.device("meta"):
        backbone = T5ForConditionalGeneration(config)
        hypernetwork = Hypernetwork(
            d_model=config.d_model,
            encoder_layers=config.num_layers,
            decoder_layers=config.num_decoder_layers,
            bottleneck=bottleneck,
        )
    return backbone, hypernetwork
