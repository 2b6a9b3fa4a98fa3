"""Models of other code as modules: HyperFormer++ as the authors' repository saves it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn

from onboard.errors import DamagedError, InputError, NotFoundError
from onboard.model.attach import attach
from onboard.model.backbone import freeze, norm_parameters
from onboard.model.hypernetwork import Hypernetwork

TASK_PREFIX = "task_embedding_controller.task_to_embeddings."
STACK_PREFIX = "{stack}.adapter_layers_hyper_net."
# our name in a StackHypernetwork → the authors' name under STACK_PREFIX
NAMES = {
    "layer_embeddings": "layer_id_embeddings.weight",
    "position_embeddings": "adapters_block_type.weight",
    "projector_in": "task_hypernet.task_embeding_generator.0",
    "projector_out": "task_hypernet.task_embeding_generator.2",
    "norm": "LayerNorm",
    "down": "down_sampler_hyper_net.weight_generator.0",
    "down_bias": "down_sampler_hyper_net.bias_generator.0",
    "up": "up_sampler_hyper_net.weight_generator.0",
    "up_bias": "up_sampler_hyper_net.bias_generator.0",
    "gamma": "post_layernorm_hypernet.weight_generator",
    "beta": "post_layernorm_hypernet.bias_generator",
}


class HyperFormer(nn.Module):
    """A T5 with a HyperFormer++ hypernetwork and one embedding per task.

    What the authors train requires a gradient (embeddings, hypernetwork, T5 norms); everything else is frozen.

    Args:
        backbone: a stock T5; it gets attached.
        hypernetwork: made for this backbone.
        embeddings: z of every task, (t,) each.
    """

    def __init__(self, backbone: Any, hypernetwork: Hypernetwork, embeddings: Mapping[str, Tensor]) -> None:
        super().__init__()
        self.backbone = freeze(backbone)
        self.hypernetwork = hypernetwork
        self.tasks = tuple(embeddings)
        self.embeddings = nn.ParameterDict({name: nn.Parameter(z) for name, z in embeddings.items()})
        self.attachment = attach(backbone)
        for parameter in norm_parameters(backbone):
            parameter.requires_grad_(True)

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None, labels: Tensor, tasks: Sequence[str]) -> Any:
        """Teacher forcing, each row under its own task's adapters.

        Args:
            input_ids: (B, S).
            attention_mask: (B, S).
            labels: (B, target length), −100 where nothing is asked.
            tasks: the task of each row by name.

        Returns:
            transformers' Seq2SeqLMOutput with `loss` (mean cross entropy) and `logits`.

        Raises:
            NotFoundError: a task has no embedding here.
            ValueError: the number of tasks is not the number of rows.
        """
        if len(tasks) != input_ids.shape[0]:
            raise ValueError(f"{input_ids.shape[0]} rows, but {len(tasks)} tasks")
        present = list(dict.fromkeys(tasks))
        if unknown := [name for name in present if name not in self.embeddings]:
            raise NotFoundError(f"No embedding for {', '.join(unknown)}.", f"There are: {', '.join(self.tasks)}.")
        generated = self.hypernetwork(torch.stack([self.embeddings[name] for name in present]))
        rows = torch.tensor([present.index(name) for name in tasks])
        with self.attachment.using(generated, rows):
            return self.backbone(input_ids=input_ids, attention_mask=attention_mask, labels=labels)


def load_hyperformer(folder: str | Path) -> HyperFormer:
    """A HyperFormer++ checkpoint with the authors' parameter names (`model.safetensors`, optionally `config.json`).

    Sizes are read from the tensors; what tensors cannot tell (dropout, epsilon, special tokens) from `config.json`
    under "t5", else T5's defaults hold.

    Raises:
        NotFoundError: the folder has no model.safetensors.
        DamagedError: the file is not readable as safetensors.
        InputError: it is not a HyperFormer++ (other variants of the authors' code are named so).
    """
    path = Path(folder) / "model.safetensors"
    if not path.is_file():
        raise NotFoundError(f"There is no model.safetensors in {folder}.", "Convert pickled checkpoints first.")
    try:
        tensors = load_file(path)
    except SafetensorError as error:
        raise DamagedError(f"{path} is not readable as safetensors: {error}") from error
    config_path = Path(folder) / "config.json"
    described = json.loads(config_path.read_text(encoding="utf-8")) if config_path.is_file() else {}
    hypernetwork = _hypernetwork(tensors)
    backbone = _backbone(tensors, described.get("t5", {}))
    found = [name.removeprefix(TASK_PREFIX) for name in tensors if name.startswith(TASK_PREFIX)]
    order = [name for name in described.get("tasks", sorted(found)) if name in found]
    return HyperFormer(backbone, hypernetwork, {name: tensors[TASK_PREFIX + name] for name in order}).eval()


def _hypernetwork(tensors: Mapping[str, Tensor]) -> Hypernetwork:
    encoder, decoder = (STACK_PREFIX.format(stack=stack) for stack in ("encoder", "decoder"))
    try:
        width, joined = tensors[f"{encoder}{NAMES['projector_in']}.weight"].shape
        hypernetwork = Hypernetwork(
            d_model=tensors[f"{encoder}{NAMES['up_bias']}.bias"].numel(),
            encoder_layers=len(tensors[encoder + NAMES["layer_embeddings"]]),
            decoder_layers=len(tensors[decoder + NAMES["layer_embeddings"]]),
            bottleneck=tensors[f"{encoder}{NAMES['down_bias']}.bias"].numel(),
            task_embedding_size=joined // 3,
            projector_width=width,
            conditioning_size=tensors[f"{encoder}{NAMES['norm']}.bias"].numel(),
        )
        state = {name: tensors[_official_name(name)] for name in hypernetwork.state_dict()}
        hypernetwork.load_state_dict(state)
    except (KeyError, RuntimeError) as error:
        raise InputError(
            f"This is not a HyperFormer++ checkpoint: {error}", "Only the variant with one shared hypernetwork is read."
        ) from error
    return hypernetwork


def _official_name(name: str) -> str:
    """`encoder.norm.weight` → `encoder.adapter_layers_hyper_net.LayerNorm.weight`."""
    stack, ours, *field = name.split(".")
    return ".".join([STACK_PREFIX.format(stack=stack) + NAMES[ours], *field])


def _backbone(tensors: Mapping[str, Tensor], described: Mapping[str, Any]) -> Any:
    """A stock T5 of the tensors' sizes with their values."""
    from transformers import T5Config, T5ForConditionalGeneration

    buckets, heads = tensors["encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight"].shape
    inner, d_model = tensors["encoder.block.0.layer.0.SelfAttention.q.weight"].shape
    gated = "encoder.block.0.layer.1.DenseReluDense.wi_0.weight" in tensors
    blocks = {
        stack: 1 + max(int(m[1]) for name in tensors if (m := re.match(rf"{stack}\.block\.(\d+)\.", name)))
        for stack in ("encoder", "decoder")
    }
    read = {
        "d_model": d_model,
        "d_kv": inner // heads,
        "d_ff": tensors["encoder.block.0.layer.1.DenseReluDense.wo.weight"].shape[1],
        "num_heads": heads,
        "num_layers": blocks["encoder"],
        "num_decoder_layers": blocks["decoder"],
        "vocab_size": tensors["shared.weight"].shape[0],
        "relative_attention_num_buckets": buckets,
        "feed_forward_proj": "gated-gelu" if gated else "relu",
        "tie_word_embeddings": "lm_head.weight" not in tensors,
    }
    backbone = T5ForConditionalGeneration(T5Config(**{"decoder_start_token_id": 0, **described, **read}))
    if "lm_head.weight" in tensors:  # transformers 5 ties in the constructor whatever the configuration says
        backbone.lm_head.weight = nn.Parameter(tensors["lm_head.weight"])
    own = {name: value for name, value in tensors.items() if name in backbone.state_dict()}
    missing, _ = backbone.load_state_dict(own, strict=False)
    tied = {"lm_head.weight", "encoder.embed_tokens.weight", "decoder.embed_tokens.weight"}
    if set(missing) - tied:
        raise InputError(f"The checkpoint lacks {sorted(set(missing) - tied)[0]} and others.")
    return backbone
