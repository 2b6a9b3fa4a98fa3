"""HyperFormer and HyperFormer++ in the naming of the authors' repository (rabeehk/hyperformer)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from onboard.model.backbone import output_scale
from onboard.model.hypernetwork import POSITIONS, Hypernetwork
from onboard.model.methods.hyperformer import PlainHyperFormer

TASK_PREFIX = "task_embedding_controller.task_to_embeddings."
PROJECTOR = "task_hypernet.task_embeding_generator"  # the authors' spelling
PLAIN_PROJECTOR = "task_embedding_controller.task_hyper_net.task_embeding_generator"
STACK_PREFIX = "{stack}.adapter_layers_hyper_net."
# Transformers 3 has a position bias in cross-attention, later versions have none; zeros say the same.
CROSS_BIAS = "decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight"
TIED = ("lm_head.weight", "encoder.embed_tokens.weight", "decoder.embed_tokens.weight")

# our name in a StackHypernetwork → the authors' name under STACK_PREFIX
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
# our name in a PlacesHypernetwork → the authors' name under `place_prefix`
_PLACE_NAMES = {
    "down": "meta_down_sampler.weight_generator.0",
    "down_bias": "meta_down_sampler.bias_generator.0",
    "up": "meta_up_sampler.weight_generator.0",
    "up_bias": "meta_up_sampler.bias_generator.0",
    "gamma": "post_layernorm_hypernet.weight_generator",
    "beta": "post_layernorm_hypernet.bias_generator",
}
_PROJECTOR_PARTS = {"projector_in": "0", "projector_out": "2"}
T5_FIELDS = (
    "model_type", "d_model", "d_kv", "d_ff", "num_layers", "num_decoder_layers", "num_heads", "vocab_size",
    "relative_attention_num_buckets", "relative_attention_max_distance", "dropout_rate", "layer_norm_epsilon",
    "feed_forward_proj", "decoder_start_token_id", "pad_token_id", "eos_token_id",
)  # fmt: skip


def official_tensors(backbone: Any, hypernetwork: Hypernetwork, embeddings: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Everything that the authors' `state_dict` holds, each tied tensor once; nothing is copied.

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
    tensors |= official_views(hypernetwork)
    return tensors | {TASK_PREFIX + name: z for name, z in embeddings.items()}


def official_config(
    backbone: Any, hypernetwork: Hypernetwork, tasks: list[str], reduction_factor: int
) -> dict[str, Any]:
    """config.json: the T5's configuration as the authors save it, and beside it what they set for their training."""
    sizes = hypernetwork.sizes
    plain = isinstance(hypernetwork, PlainHyperFormer)
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
            "train_task_embeddings": plain,
            "unique_hyper_net": False,
            "efficient_unique_hyper_net": not plain,
        },
    }


def is_head_tied(backbone: Any) -> bool:
    """Whether the language-model head is the token embedding."""
    return bool(backbone.lm_head.weight.data_ptr() == backbone.shared.weight.data_ptr())


def official_views(hypernetwork: Hypernetwork) -> dict[str, Tensor]:
    """The authors' name of every part → a view into our tensor: read it to export, fill it to import.

    Together the views cover every parameter once.
    """
    return _plain_views(hypernetwork) if isinstance(hypernetwork, PlainHyperFormer) else _shared_views(hypernetwork)


def _shared_views(hypernetwork: Hypernetwork) -> dict[str, Tensor]:
    """`encoder.norm.weight` → `encoder.adapter_layers_hyper_net.LayerNorm.weight`."""
    views = {}
    for name, value in hypernetwork.state_dict().items():
        stack, ours, *field = name.split(".")
        views[".".join([STACK_PREFIX.format(stack=stack) + _SHARED_NAMES[ours], *field])] = value
    return views


def _plain_views(hypernetwork: PlainHyperFormer) -> dict[str, Tensor]:
    """`encoder.down.weight` → one view per place, `encoder.block.0.layer.0.adapter_controller.meta_down_sampler.…`."""
    views = {}
    for name, value in hypernetwork.state_dict().items():
        owner, *rest = name.split(".")
        if owner in _PROJECTOR_PARTS:
            views[".".join([PLAIN_PROJECTOR, _PROJECTOR_PARTS[owner], *rest])] = value
            continue
        ours, field = rest
        places = POSITIONS * hypernetwork.sizes[f"{owner}_layers"]
        for place, view in enumerate(value.unflatten(0, (places, -1)).unbind(0)):
            layer, position = divmod(place, POSITIONS)
            views[f"{place_prefix(owner, layer, position)}{_PLACE_NAMES[ours]}.{field}"] = view
    return views


def place_prefix(stack: str, layer: int, position: int) -> str:
    """`encoder.block.3.layer.1.adapter_controller.` for the feed-forward (position 0) of the encoder's layer 3."""
    feed_forward = 1 if stack == "encoder" else 2
    return f"{stack}.block.{layer}.layer.{0 if position else feed_forward}.adapter_controller."
