"""Sentences and passages of a plain-text corpus."""

from __future__ import annotations

import lzma
import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import numpy as np

_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z\"'“])")
_MIN_WORDS, _MAX_WORDS, _MAX_PASSAGE_WORDS = 5, 60, 160


def _paragraphs(corpus: Sequence[Path]) -> Iterator[str]:
    for path in corpus:
        with ExitStack() as stack:
            opener = lzma.open if path.suffix == ".xz" else open
            lines = stack.enter_context(opener(path, "rt", encoding="utf-8"))
            yield from (line.strip() for line in lines)


def corpus_texts(corpus: Sequence[Path], sentences: int, passages: int, seed: int) -> tuple[list[str], list[str]]:
    """Return a seeded sample of sentences and of longer passages.

    Args:
        corpus: plain text, one paragraph per line, may be .xz.
        sentences: number of sentences with 5 to 60 words.
        passages: number of paragraphs, truncated to 160 words.
        seed: determines the sample.
    """
    rng = np.random.default_rng(seed)
    paragraphs = list(_paragraphs(corpus))
    order = rng.permutation(len(paragraphs))
    sampled: list[str] = []
    longer: list[str] = []
    for index in order:
        pieces = _SENTENCE_END.split(paragraphs[index])
        if len(longer) < passages and len(pieces) >= 3:
            longer.append(" ".join(paragraphs[index].split()[:_MAX_PASSAGE_WORDS]))
            continue
        fitting = [piece for piece in pieces if _MIN_WORDS <= len(piece.split()) <= _MAX_WORDS]
        sampled.extend(fitting[:2])
        if len(sampled) >= sentences and len(longer) >= passages:
            break
    return sampled[:sentences], longer
