"""Tiny checkpoints with the names that the authors' code gives, written out by loops of this file's own."""

from __future__ import annotations

import json
import string
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Digits, Sequence, Whitespace
from torch import Tensor
from transformers import PreTrainedTokenizerFast, T5Config, T5ForConditionalGeneration

TASKS = ("mnli", "cola", "stsb")
LABELS = {"cola": ["0", "1"], "mnli": ["0", "1", "2"], "stsb": {"low": 0, "high": 5}}
D_MODEL, BOTTLENECK, SIZE, WIDTH, CONDITIONING = 16, 4, 10, 7, 6
LAYERS = {"encoder": 3, "decoder": 2}
BIAS = "decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight"


def places() -> Iterator[tuple[str, int, int, str]]:
    """Stack, layer, position (0 feed-forward, 1 self-attention) and the sub-layer's name."""
    for stack, layers in LAYERS.items():
        for layer in range(layers):
            for position in (0, 1):
                sublayer = 0 if position else {"encoder": 1, "decoder": 2}[stack]
                yield stack, layer, position, f"{stack}.block.{layer}.layer.{sublayer}"


def generators(prefix: str, down: str, up: str) -> dict[str, Tensor]:
    """The linear maps from I, under a prefix."""
    outputs = {
        f"{down}.weight_generator.0": BOTTLENECK * D_MODEL,
        f"{down}.bias_generator.0": BOTTLENECK,
        f"{up}.weight_generator.0": D_MODEL * BOTTLENECK,
        f"{up}.bias_generator.0": D_MODEL,
        "post_layernorm_hypernet.weight_generator": D_MODEL,
        "post_layernorm_hypernet.bias_generator": D_MODEL,
    }
    return {k: v for name, output in outputs.items() for k, v in linear(prefix + name, CONDITIONING, output).items()}


def linear(name: str, inputs: int, outputs: int) -> dict[str, Tensor]:
    return {f"{name}.weight": torch.randn(outputs, inputs) * 0.3, f"{name}.bias": torch.randn(outputs) * 0.3}


def hypernetwork_tensors(method: str) -> dict[str, Tensor]:
    tensors: dict[str, Tensor] = {}
    if method == "hyperformer":
        prefix = "task_embedding_controller.task_hyper_net.task_embeding_generator"
        tensors |= linear(f"{prefix}.0", SIZE, WIDTH) | linear(f"{prefix}.2", WIDTH, CONDITIONING)
        for *_, name in places():
            tensors |= generators(f"{name}.adapter_controller.", "meta_down_sampler", "meta_up_sampler")
        return tensors
    for stack, layers in LAYERS.items():
        prefix = f"{stack}.adapter_layers_hyper_net"
        tensors[f"{prefix}.layer_id_embeddings.weight"] = torch.randn(layers, SIZE)
        tensors[f"{prefix}.adapters_block_type.weight"] = torch.randn(2, SIZE)
        tensors |= linear(f"{prefix}.task_hypernet.task_embeding_generator.0", 3 * SIZE, WIDTH)
        tensors |= linear(f"{prefix}.task_hypernet.task_embeding_generator.2", WIDTH, CONDITIONING)
        tensors[f"{prefix}.LayerNorm.weight"] = torch.randn(CONDITIONING)
        tensors[f"{prefix}.LayerNorm.bias"] = torch.randn(CONDITIONING)
        tensors |= generators(f"{prefix}.", "down_sampler_hyper_net", "up_sampler_hyper_net")
    return tensors


def make_t5(**settings: Any) -> T5ForConditionalGeneration:
    config = T5Config(
        **{
            "vocab_size": 64, "d_model": D_MODEL, "d_ff": 24, "d_kv": 8, "num_heads": 2, "dropout_rate": 0.0,
            "num_layers": LAYERS["encoder"], "num_decoder_layers": LAYERS["decoder"], "decoder_start_token_id": 0,
            **settings,
        }
    )  # fmt: skip
    backbone = T5ForConditionalGeneration(config).eval()
    with torch.no_grad():
        for name, parameter in backbone.named_parameters():
            parameter.add_(torch.randn_like(parameter) * (0.5 if "relative" in name else 0.05))
    return backbone


def make_tensors(method: str, seed: int = 0) -> dict[str, Tensor]:
    """What the authors' `state_dict` holds, tied tensors once."""
    torch.manual_seed(seed)
    tied = ("lm_head.weight", "encoder.embed_tokens.weight", "decoder.embed_tokens.weight")
    tensors = {k: v.clone() for k, v in make_t5().state_dict().items() if k not in tied}
    tensors[BIAS] = torch.zeros(32, 2)
    tensors |= hypernetwork_tensors(method)
    return tensors | {f"task_embedding_controller.task_to_embeddings.{task}": torch.randn(SIZE) for task in TASKS}


def write_checkpoint(folder: Path, method: str, tensors: dict[str, Tensor] | None = None) -> Path:
    """A folder with model.safetensors, the authors' config.json, a tokenizer and labels.json."""
    folder.mkdir(parents=True, exist_ok=True)
    save_file(make_tensors(method) if tensors is None else tensors, folder / "model.safetensors")
    config = {"model_type": "t5", "train_adapters": True, "dropout_rate": 0.0, "decoder_start_token_id": 0}
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    (folder / "labels.json").write_text(json.dumps(LABELS), encoding="utf-8")
    make_tokenizer().save_pretrained(folder)
    return folder


def make_tokenizer() -> PreTrainedTokenizerFast:
    words = ["<pad>", "</s>", "<unk>", "|", ".", *string.digits, *string.ascii_lowercase]
    tokenizer = Tokenizer(WordLevel({word: i for i, word in enumerate(words)}, unk_token="<unk>"))
    tokenizer.pre_tokenizer = Sequence([Whitespace(), Digits(individual_digits=True)])
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="<pad>", eos_token="</s>", unk_token="<unk>")
