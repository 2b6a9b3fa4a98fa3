"""Texts to distil on: every text of the sources, sentences and passages of a plain-text corpus."""

from __future__ import annotations

import gzip
import json
import lzma
import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import numpy as np

from onboard.domain.dataset import Example
from onboard.errors import InputError, NotFoundError

SPLITS = ("train", "validation", "test")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z\"'“])")
_MIN_WORDS, _MAX_WORDS, _MAX_PASSAGE_WORDS = 5, 60, 160


def read_split(folder: Path, split: str) -> list[Example]:
    """Rows of one split of a source folder (`train.jsonl.gz` …).

    Raises:
        NotFoundError: the split is missing.
    """
    path = folder / f"{split}.jsonl.gz"
    if not path.is_file():
        raise NotFoundError(
            f"source {folder.name} has no {split} split ({path})", f"put {split}.jsonl.gz into {folder}"
        )
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    return [Example(row.get("text", row.get("text_a")), row.get("text_b"), row["label"]) for row in rows]


def source_folders(sources: Path) -> list[Path]:
    """Folders of the sources, by name.

    Raises:
        InputError: none is there.
    """
    folders = sorted(path for path in sources.iterdir() if path.is_dir()) if sources.is_dir() else []
    if not folders:
        raise InputError(f"{sources} holds no source folders", "name a folder with one folder per task: --sources DIR")
    return folders


def _paragraphs(corpus: Sequence[Path]) -> Iterator[str]:
    for path in corpus:
        with ExitStack() as stack:
            opener = lzma.open if path.suffix == ".xz" else open
            lines = stack.enter_context(opener(path, "rt", encoding="utf-8"))
            yield from (line.strip() for line in lines)


def corpus_texts(corpus: Sequence[Path], sentences: int, passages: int, seed: int) -> tuple[list[str], list[str]]:
    """A seeded sample of sentences and of longer passages.

    Args:
        corpus: plain text, one paragraph a line, may be .xz.
        sentences: how many sentences of 5 to 60 words.
        passages: how many paragraphs, cut at 160 words.
        seed: decides which.
    """
    rng = np.random.default_rng(seed)
    paragraphs = list(_paragraphs(corpus))
    order = rng.permutation(len(paragraphs))
    found: list[str] = []
    longer: list[str] = []
    for index in order:
        pieces = _SENTENCE_END.split(paragraphs[index])
        if len(longer) < passages and len(pieces) >= 3:
            longer.append(" ".join(paragraphs[index].split()[:_MAX_PASSAGE_WORDS]))
            continue
        fitting = [piece for piece in pieces if _MIN_WORDS <= len(piece.split()) <= _MAX_WORDS]
        found.extend(fitting[:2])
        if len(found) >= sentences and len(longer) >= passages:
            break
    return found[:sentences], longer


def source_texts(sources: Path) -> list[str]:
    """Every distinct text of the sources' training splits (validation and test rows never)."""
    texts: dict[str, None] = {}
    for folder in source_folders(sources):
        for row in read_split(folder, "train"):
            texts.setdefault(row.text_a)
            if row.text_b is not None:
                texts.setdefault(row.text_b)
    return list(texts)
