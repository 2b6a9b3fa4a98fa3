"""A base of a few thousand numbers, made in a second: random weights, the real file formats."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers
from transformers import AutoTokenizer, PreTrainedTokenizerFast, T5Config, T5ForConditionalGeneration

from onboard.bases import Base, find_base
from onboard.domain.dataset import Example
from onboard.making.curriculum import Source
from onboard.making.multitask.assemble import TrainedBase, save_base
from onboard.model.encoding import TextEncoder
from onboard.model.engine import Engine
from onboard.model.methods.hyperformer_plus_plus import HyperFormerPlusPlus

WORDS = "good bad fine poor great awful happy sad same other yes no positive negative a the film plot was is and not it"
SIZE = 16


@dataclass(frozen=True)
class Shape:
    """Of a backbone, its adapters and its hypernetwork.

    Args:
        layers: of the encoder, and of the decoder.
        bottleneck: units of an adapter.
        embedding: numbers of a task.
        projector: width of the hypernetwork's projector.
    """

    d_model: int = 16
    d_ff: int = 32
    d_kv: int = 8
    layers: int = 2
    heads: int = 2
    bottleneck: int = 4
    embedding: int = SIZE
    projector: int = 16


T5_SMALL_SHAPE = Shape(512, 2048, 64, 6, 8, 16, 64, 128)


def make_tiny_base(folder: Path, seed: int = 0, tokenizer_of: Path | None = None, shape: Shape = Shape()) -> Base:
    """A base with the sources `sst2` (two labels, two training rows) and `stsb` (a regression).

    Args:
        folder: where it goes.
        seed: of its weights.
        tokenizer_of: folder of another tokenizer; None makes a tiny one.
        shape: of its backbone.
    """
    torch.manual_seed(seed)
    if tokenizer_of is None:
        make_tiny_tokenizer(folder / "tokenizer", WORDS.split())
    tokenizer = AutoTokenizer.from_pretrained(tokenizer_of or folder / "tokenizer")
    config = T5Config(
        vocab_size=len(tokenizer), d_model=shape.d_model, d_ff=shape.d_ff, d_kv=shape.d_kv, num_layers=shape.layers,
        num_decoder_layers=shape.layers, num_heads=shape.heads, dropout_rate=0.0, decoder_start_token_id=0,
        pad_token_id=0, eos_token_id=1, tie_word_embeddings=True,
    )  # fmt: skip
    backbone = T5ForConditionalGeneration(config)
    hypernetwork = HyperFormerPlusPlus(
        d_model=shape.d_model, encoder_layers=shape.layers, decoder_layers=shape.layers, bottleneck=shape.bottleneck,
        task_embedding_size=shape.embedding, projector_width=shape.projector,
    )  # fmt: skip
    with torch.no_grad():
        for parameter in hypernetwork.parameters():
            parameter.mul_(3.0)
    engine = Engine(backbone, hypernetwork, TextEncoder(tokenizer, "|", 32))
    rows = (Example("a good film", None, "positive"), Example("a bad plot", None, "negative"))
    scores = (Example("good film", "great film", "4.5"), Example("good film", "sad", "0.5"))
    sources = [
        Source("sst2", "classification", ("negative", "positive"), ("negative", "positive"), None, None, rows),
        Source("stsb", "regression", (), _bucket_words(), 0.0, 5.0, scores),
    ]
    rng = np.random.default_rng(seed)
    embeddings = {
        name: rng.standard_normal(shape.embedding).astype(np.float32) for name in ("sst2", "stsb", "topics-2")
    }
    save_base(TrainedBase(engine, sources, embeddings), _document(sources, shape), folder / "base")
    return find_base(str(folder / "base"))


def make_tiny_tokenizer(folder: Path, words: Sequence[str]) -> int:
    """A tokenizer that knows a few words, all letters, and bytes for the rest, in `folder`.

    Returns:
        How many pieces it has.
    """
    special = ["<pad>", "</s>", "<unk>"]
    scored = [(piece, 0.0) for piece in special] + [(f"<0x{byte:02X}>", -20.0) for byte in range(256)]
    scored += [(f"▁{word}", -3.0) for word in words] + [("▁", -5.0)] + [(chr(code), -9.0) for code in range(97, 123)]
    tokenizer = Tokenizer(models.Unigram(scored, unk_id=2, byte_fallback=True))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Metaspace()])
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token=special[0], eos_token=special[1], unk_token=special[2]
    ).save_pretrained(folder)
    return len(scored)


def _bucket_words() -> tuple[str, ...]:
    from onboard.data.regression import Buckets

    return Buckets(0.0, 5.0).words


def _document(sources: list[Source], shape: Shape) -> dict[str, object]:
    return {
        "format": 1, "name": "tiny", "licence": "Apache-2.0", "pair_separator": "|", "max_tokens": 32,
        "task_embedding_size": shape.embedding, "reduction_factor": shape.d_model // shape.bottleneck,
        "sources": {
            source.name: {
                "kind": source.kind, "labels": list(source.labels), "words": list(source.words), "low": source.low,
                "high": source.high, "rows": len(source.train), "metrics": {},
            }
            for source in sources
        },
        "anchors": {"topics-2": {"kind": "classification", "labels": ["film", "plot"], "words": ["film", "plot"]}},
    }  # fmt: skip
