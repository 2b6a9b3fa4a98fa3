"""Answers of many tasks at once: rows of different tasks and hypernetworks share every batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import torch

from onboard.guard.risk import made_by
from onboard.model.batched import mixed_log_probabilities
from onboard.model.engine import Engine
from onboard.model.hypernetwork import GeneratedAdapters, Hypernetwork
from onboard.model.memory import RowsAtOnce
from onboard.model.scoring import LabelTrie

GENERATED_BYTES: Final = 256 * 2**20  # of adapters in memory at once; those of T5-base take 7.6 MB per task


@dataclass(frozen=True)
class Question:
    """Rows of one task, with its hypernetwork.

    Args:
        hypernetwork: generates its adapters.
        z: (t,) its embedding.
        trie: trie of its K label words.
        ids: token ids of n rows.
    """

    hypernetwork: Hypernetwork
    z: np.ndarray
    trie: LabelTrie
    ids: Sequence[Sequence[int]]


@torch.inference_mode()
def answers(
    engine: Engine,
    questions: Sequence[Question],
    checkpoint: Callable[[], None] = lambda: None,
    at_once: RowsAtOnce | None = None,
    generated_bytes: int = GENERATED_BYTES,
) -> list[np.ndarray]:
    """Return log-probabilities (n, K) of every question's rows, in float64.

    Args:
        engine: the backbone.
        questions: of T tasks.
        checkpoint: called before every batch; may raise to stop.
        at_once: batch size that fits in memory; updated for further calls.
        generated_bytes: memory limit for adapters that are in use together.

    Raises:
        OutOfMemoryError: the GPU cannot hold even a single row.
    """
    parts: list[np.ndarray] = []
    together = max(1, generated_bytes // _bytes_of_adapters(questions[0])) if questions else 1
    for start in range(0, len(questions), together):
        parts.extend(_answers(engine, questions[start : start + together], checkpoint, at_once))
    return parts


def _answers(
    engine: Engine, questions: Sequence[Question], checkpoint: Callable[[], None], at_once: RowsAtOnce | None
) -> list[np.ndarray]:
    counts = [len(question.ids) for question in questions]
    scores = mixed_log_probabilities(
        engine,
        [ids for question in questions for ids in question.ids],
        _generated(engine, questions),
        [question.trie for question in questions],
        np.repeat(np.arange(len(questions)), counts),
        checkpoint,
        at_once,
    ).astype(np.float64)
    parts = np.split(scores, np.cumsum(counts)[:-1])
    return [part[:, : question.trie.labels] for part, question in zip(parts, questions, strict=True)]


def _generated(engine: Engine, questions: Sequence[Question]) -> GeneratedAdapters:
    """Generate the adapters of all questions in order, in one product per hypernetwork."""
    hypernetworks = {id(question.hypernetwork): question.hypernetwork for question in questions}
    parts, places = [], []
    for key, hypernetwork in hypernetworks.items():
        own = [place for place, question in enumerate(questions) if id(question.hypernetwork) == key]
        places.extend(own)
        made = made_by(hypernetwork, np.stack([questions[place].z for place in own]))
        parts.append(made.to(engine.device, made.encoder.down.dtype))
    return GeneratedAdapters.joined(parts, None if len(parts) == 1 else np.argsort(places).tolist())


def _bytes_of_adapters(question: Question) -> int:
    made = made_by(question.hypernetwork, question.z[None])
    return sum(weight.numel() * weight.element_size() for stack in made for weight in stack)
