"""A T5 of a few thousand numbers in a folder, and source tasks that it can learn, for tests of base training."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import T5Config, T5ForConditionalGeneration

from bench.harness.tiny_base import make_tiny_tokenizer

FILLERS = ("film", "plot", "the", "was", "and")
WORDS = (*FILLERS, "great", "awful", "positive", "negative", "train", "validation", "test", "yes", "no", "good", "bad")


def make_tiny_t5(folder: Path, **changes: Any) -> Path:
    """A T5 with random weights as `save_pretrained` leaves it, tokenizer included."""
    torch.manual_seed(0)
    pieces = make_tiny_tokenizer(folder, WORDS)
    sizes = {
        "vocab_size": pieces, "d_model": 16, "d_ff": 32, "d_kv": 8, "num_layers": 2, "num_decoder_layers": 2,
        "num_heads": 2, "dropout_rate": 0.1, "decoder_start_token_id": 0, "pad_token_id": 0, "eos_token_id": 1,
    }  # fmt: skip
    T5ForConditionalGeneration(T5Config(**(sizes | changes))).save_pretrained(folder)
    return folder


def make_sources(folder: Path, rows: int = 48) -> Path:
    """`moods` (two labels, told by a word) and `alike` (pairs with a score), each with three splits."""
    for split, seed, count in (("train", 0, rows), ("validation", 1, 24), ("test", 2, 24)):
        rng = np.random.default_rng(seed)
        moods = [_mood(rng, f"{split} {row}") for row in range(count)]
        alike = [_pair(rng, f"{split} {row}", row) for row in range(count)]
        for name, examples in (("alike", alike), ("moods", moods)):
            write_split(folder / name, split, examples)
    return folder


def write_split(folder: Path, split: str, rows: list[dict[str, Any]]) -> None:
    """One split of a source as a compressed JSONL file."""
    folder.mkdir(parents=True, exist_ok=True)
    with gzip.open(folder / f"{split}.jsonl.gz", "wt", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)


def _mood(rng: np.random.Generator, mark: str) -> dict[str, Any]:
    good = bool(rng.integers(2))
    words = [*rng.choice(FILLERS, int(rng.integers(2, 9))), "great" if good else "awful"]
    return {"text": f"{' '.join(rng.permutation(words))} {mark}", "label": "positive" if good else "negative"}


def _pair(rng: np.random.Generator, mark: str, row: int) -> dict[str, Any]:
    words = " ".join(rng.choice(FILLERS, 3))
    return {"text_a": f"{words} {mark}", "text_b": words, "label": (row % 24) / 4 + 0.1}
