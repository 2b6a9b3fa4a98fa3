"""HyperFormer and HyperFormer++ with the names of the authors' repository (rabeehk/hyperformer)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from onboard.model.backbone import output_scale
from onboard.model.hypernetwork import Hypernetwork

TASK_PREFIX = "task_embedding_controller.task_to_embeddings."
# Only transformers 3 has a position bias in cross-attention; zeros are equivalent to later versions.
CROSS_BIAS = "decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight"
TIED = ("lm_head.weight", "encoder.embed_tokens.weight", "decoder.embed_tokens.weight")

T5_FIELDS = (
    "model_type", "d_model", "d_kv", "d_ff", "num_layers", "num_decoder_layers", "num_heads", "vocab_size",
    "relative_attention_num_buckets", "relative_attention_max_distance", "dropout_rate", "layer_norm_epsilon",
    "feed_forward_proj", "decoder_start_token_id", "pad_token_id", "eos_token_id",
)  # fmt: skip


def official_tensors(backbone: Any, hypernetwork: Hypernetwork, embeddings: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return all tensors of the authors' `state_dict`, each tied tensor once, without copying.

    Args:
        backbone: a T5.
        hypernetwork: of either method.
        embeddings: z of every task, (t,).
    """
    head_tied = is_head_tied(backbone)
    skipped = set(TIED) if head_tied else set(TIED[1:])
    tensors = {name: value for name, value in backbone.state_dict().items() if name not in skipped}
    config = backbone.config
    tensors[CROSS_BIAS] = torch.zeros(config.relative_attention_num_buckets, config.num_heads)
    tensors |= hypernetwork.official_views()
    return tensors | {TASK_PREFIX + name: z for name, z in embeddings.items()}


def official_config(
    backbone: Any, hypernetwork: Hypernetwork, tasks: list[str], reduction_factor: int
) -> dict[str, Any]:
    """Return config.json: the T5's configuration as the authors save it, and their settings of training."""
    sizes = hypernetwork.sizes
    return {
        **{field: value for field in T5_FIELDS if (value := getattr(backbone.config, field, None)) is not None},
        "tie_word_embeddings": is_head_tied(backbone),
        "scale_decoder_outputs": output_scale(backbone) != 1.0,
        "train_adapters": True,
        "method": hypernetwork.METHOD,
        "tasks": tasks,
        "adapter": {
            "adapter_config_name": "meta-adapter",
            "reduction_factor": reduction_factor,
            "task_embedding_dim": sizes["task_embedding_size"],
            "task_hidden_dim": sizes["projector_width"],
            "projected_task_embedding_dim": sizes["conditioning_size"],
            "non_linearity": "gelu_new",
            "add_layer_norm_before_adapter": False,
            "add_layer_norm_after_adapter": True,
            "conditional_layer_norm": True,
            **hypernetwork.OFFICIAL_SWITCHES,
        },
    }


def is_head_tied(backbone: Any) -> bool:
    """Return whether the language-model head is the token embedding."""
    return bool(backbone.lm_head.weight.data_ptr() == backbone.shared.weight.data_ptr())
