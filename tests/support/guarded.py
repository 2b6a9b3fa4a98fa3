"""Earlier tasks on the tiny base, and changed hypernetworks: what the tests of the guard have in common."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence

import numpy as np
import torch

from onboard.guard.answers import Question, answers
from onboard.model.batch import LabelledRows
from onboard.model.engine import Engine
from onboard.model.hypernetwork import Hypernetwork
from onboard.model.protected import ProtectedTask
from support.published import embedding_of

WORDS = [
    "good",
    "bad",
    "fine",
    "poor",
    "great",
    "awful",
    "happy",
    "sad",
    "film",
    "plot",
    "was",
    "is",
    "and",
    "not",
    "it",
]


def texts(engine: Engine, count: int, seed: int = 0) -> list[list[int]]:
    """Token ids of made-up texts, each another one."""
    rng = np.random.default_rng(seed)
    made = [(" ".join(rng.choice(WORDS, rng.integers(3, 9))), None) for _ in range(count)]
    return engine.encoder.encode(made)


def pairs(engine: Engine, count: int, seed: int = 0) -> list[list[int]]:
    """The same of pairs."""
    rng = np.random.default_rng(seed)
    made = [(" ".join(rng.choice(WORDS, rng.integers(2, 5))), " ".join(rng.choice(WORDS, 3))) for _ in range(count)]
    return engine.encoder.encode(made)


def earlier(
    engine: Engine,
    name: str,
    *,
    seed: int = 0,
    rows: int = 0,
    own: int = 0,
    reference: Hypernetwork | None = None,
    trouble: str | None = None,
) -> ProtectedTask:
    """A task whose labelled rows have the labels that its reference gives them with its own probabilities."""
    before = reference or engine.hypernetwork
    trie, z = engine.trie(["yes", "no"]), embedding_of(seed)
    held = None
    if rows:
        ids = texts(engine, rows, seed + 100)
        chances = np.exp(answers(engine, [Question(before, z, trie, ids)])[0])
        drawn = [
            np.random.default_rng((seed, row)).choice(2, p=chance / chance.sum()) for row, chance in enumerate(chances)
        ]
        held = LabelledRows(ids, np.eye(2, dtype=np.float32)[drawn])
    return ProtectedTask(name, z, trie, before, held, texts(engine, own, seed + 200) if own else (), trouble)


def shaken(hypernetwork: Hypernetwork, scale: float, seed: int = 0) -> Hypernetwork:
    """A frozen copy whose weights all moved at random, by `scale` of each tensor's root mean square."""
    changed = copy.deepcopy(hypernetwork).requires_grad_(False)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for weight in changed.parameters():
            weight += torch.randn(weight.shape, generator=generator) * scale * weight.square().mean().sqrt()
    return changed


class Counted:
    """Counts calls, and may stop at one of them."""

    def __init__(self, stop: Callable[[int], None] = lambda _: None) -> None:
        self.calls = 0
        self._stop = stop

    def __call__(self) -> None:
        self.calls += 1
        self._stop(self.calls)


def names(verdicts: Sequence[object]) -> list[str]:
    return [str(getattr(verdict, "task")) for verdict in verdicts]  # noqa: B009 (any object with a task)
