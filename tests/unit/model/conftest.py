"""Tiny T5s of every family, a tiny tokenizer and a hypernetwork, all made in memory."""

from __future__ import annotations

import os
import string
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from torch import nn
from transformers import (
    ByT5Tokenizer,
    MT5Config,
    MT5ForConditionalGeneration,
    PreTrainedTokenizerFast,
    T5Config,
    T5ForConditionalGeneration,
)

from onboard.model.encoding import TextEncoder
from onboard.model.engine import Engine
from onboard.model.hypernetwork import Hypernetwork
from onboard.model.methods.hyperformer_plus_plus import HyperFormerPlusPlus

SIZES: dict[str, Any] = {
    "d_model": 32,
    "d_kv": 8,
    "d_ff": 48,
    "num_heads": 4,
    "num_layers": 3,
    "num_decoder_layers": 2,
    "vocab_size": 400,
    "dropout_rate": 0.1,
    "decoder_start_token_id": 0,
}
FAMILIES = ("t5", "v1.1", "v1.1-untied", "mt5", "mt5-untied", "byt5")


def make_backbone(family: str, seed: int = 0) -> Any:
    torch.manual_seed(seed)
    if family.startswith("mt5"):
        backbone: Any = MT5ForConditionalGeneration(MT5Config(**SIZES))
    elif family.startswith("v1.1"):
        backbone = T5ForConditionalGeneration(
            T5Config(**SIZES, feed_forward_proj="gated-gelu", tie_word_embeddings=False)
        )
    elif family == "byt5":
        sizes = {**SIZES, "vocab_size": 384, "num_layers": 4, "num_decoder_layers": 1}
        backbone = T5ForConditionalGeneration(
            T5Config(**sizes, feed_forward_proj="gated-gelu", tie_word_embeddings=False)
        )
    else:
        backbone = T5ForConditionalGeneration(T5Config(**SIZES))
    if family.endswith("untied"):
        backbone.lm_head.weight = nn.Parameter(torch.randn_like(backbone.lm_head.weight))
    if family != "t5":  # these do not scale the decoder's output: keep the logits of ordinary size
        backbone.lm_head.weight.data.mul_(0.2)
    with torch.no_grad():  # a bias large enough for a wrong position to show
        for stack in (backbone.encoder, backbone.decoder):
            stack.block[0].layer[0].SelfAttention.relative_attention_bias.weight.normal_()
    return backbone.eval()


def make_hypernetwork(backbone: Any, seed: int = 1, **sizes: int) -> Hypernetwork:
    """Every parameter random, so that no term of the adapter vanishes."""
    torch.manual_seed(seed)
    hypernetwork = HyperFormerPlusPlus(
        d_model=backbone.config.d_model,
        encoder_layers=backbone.config.num_layers,
        decoder_layers=backbone.config.num_decoder_layers,
        **{"bottleneck": 6, "task_embedding_size": 12, "projector_width": 20, **sizes},
    )
    with torch.no_grad():
        for parameter in hypernetwork.parameters():
            parameter.normal_(std=0.3)
    return hypernetwork


def make_tokenizer() -> PreTrainedTokenizerFast:
    words = ["<pad>", "</s>", "<unk>", "|", *string.ascii_lowercase, *(f"w{i}" for i in range(300))]
    tokenizer = Tokenizer(WordLevel({word: i for i, word in enumerate(words)}, unk_token="<unk>"))
    tokenizer.pre_tokenizer = Whitespace()
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="<pad>", eos_token="</s>", unk_token="<unk>")


@pytest.fixture(params=FAMILIES)
def family(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="session")
def backbone_of() -> Callable[..., Any]:
    return make_backbone


@pytest.fixture(scope="session")
def hypernetwork_for() -> Callable[..., Hypernetwork]:
    return make_hypernetwork


@pytest.fixture
def engine_of(text_encoder: TextEncoder) -> Callable[[str], Engine]:
    def build(family: str) -> Engine:
        backbone = make_backbone(family)
        return Engine(backbone, make_hypernetwork(backbone), text_encoder)

    return build


@pytest.fixture
def text_encoder() -> TextEncoder:
    return TextEncoder(make_tokenizer(), max_tokens=16)


@pytest.fixture
def byte_encoder() -> TextEncoder:
    return TextEncoder(ByT5Tokenizer(), max_tokens=40)


@pytest.fixture
def engine(engine_of: Callable[[str], Engine]) -> Engine:
    return engine_of("t5")


@pytest.fixture(scope="session")
def parity_folder() -> Path:
    """The fixture of the authors' numbers; it lies beside the repository and is not part of it."""
    named = os.environ.get("ONBOARD_PARITY_FIXTURES")
    folder = Path(named) if named else Path(__file__).parents[4] / "shared" / "parity"
    if not (folder / "hyperformer_pp" / "perturbed" / "model.safetensors").is_file():
        pytest.skip("the parity fixture is not here: set ONBOARD_PARITY_FIXTURES to its folder")
    return folder / "hyperformer_pp" / "perturbed"
