"""Earlier tasks whose true loss can be measured: the base's sources, and sources learned again from few rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np

from bench.harness.as_a_job import train_embedding
from bench.harness.as_if_new import drawn_tests, workbench
from bench.transfer.material import read
from onboard.bases import Base
from onboard.data.splits import shots
from onboard.guard.canaries import canary_ids
from onboard.guard.evidence import Canaries
from onboard.model.engine import Engine
from onboard.model.scoring import LabelTrie
from onboard.pipeline.material import Workbench
from onboard.train.settings import FewShotSettings

SHOTS: Final = 32
SHIPPED: Final = ("cola", "mnli", "qnli", "qqp", "sst2", "stsb")  # with their own embeddings
LEARNED: Final = ("mnli", "qqp", "sst2")  # learned again, from the mean of all embeddings of sources
SINGLES: Final = 37  # canaries, and as many pairs as there are
MOST_TOKENS: Final = 40  # of a row or text: longer ones cost more and show nothing else


@dataclass(frozen=True)
class Task:
    """An earlier task.

    Args:
        name: `sst2` as it is shipped, `sst2@32` learned again from so many rows.
        z: (t,) its embedding.
        trie: of its K label words.
        ids: token ids: test rows, texts that it was trained on, single canaries, pairs, one after the other.
        targets: (m, K) of the test rows.
        weights: (m,) of the test rows, of mean 1: each label counts as often as among the rows that were trained on.
        own: how many texts it was trained on.
    """

    name: str
    z: np.ndarray
    trie: LabelTrie
    ids: Sequence[Sequence[int]]
    targets: np.ndarray
    weights: np.ndarray
    own: int

    @property
    def texts(self) -> Sequence[Sequence[int]]:
        """Those that it was trained on."""
        return self.ids[len(self.targets) : len(self.targets) + self.own]


def tasks(base: Base, engine: Engine, folder: Path, rows: int) -> list[Task]:
    """All of them, with at most so many test rows each."""
    return [
        *(_shipped(base, engine, folder / name, rows) for name in SHIPPED),
        *(_learned(base, engine, folder / name, rows) for name in LEARNED),
    ]


def _shipped(base: Base, engine: Engine, folder: Path, rows: int) -> Task:
    (source,) = [candidate for candidate in base.sources if candidate.name == folder.name]
    bench = Workbench(base, engine, read(folder), source.words)
    ids, targets = _tests(bench, rows)
    z = base.embeddings[source.name]
    return Task(
        source.name, z, engine.trie(source.words), [*ids, *_canaries(engine)], targets, _weights(bench, targets), 0
    )


def _learned(base: Base, engine: Engine, folder: Path, rows: int) -> Task:
    dataset = shots(read(folder), SHOTS, 0)
    bench = workbench(base, engine, dataset)
    material = bench.labelled(dataset.train)
    others = [base.embeddings[source.name] for source in base.sources if source.name != folder.name]
    trie, settings = engine.trie(bench.words), replace(FewShotSettings(), seeds=1)
    z = train_embedding(engine, np.mean(others, axis=0), material, trie, settings, 0).z
    ids, targets = _tests(bench, rows)
    own = _short(material.ids)
    weights = _weights(bench, targets)
    return Task(f"{folder.name}@{SHOTS}", z, trie, [*ids, *own, *_canaries(engine)], targets, weights, len(own))


def _tests(bench: Workbench, rows: int) -> tuple[list[Sequence[int]], np.ndarray]:
    """The first of the test rows that are short enough, and their targets."""
    test = drawn_tests(bench.dataset, 4 * rows)
    ids = bench.encode(test)
    chosen = [row for row, tokens in enumerate(ids) if len(tokens) <= MOST_TOKENS][:rows]
    return [ids[row] for row in chosen], bench.targets([test[row] for row in chosen])


def _weights(bench: Workbench, targets: np.ndarray) -> np.ndarray:
    """The requests of a version resemble its training rows; some of these test sets have other shares of labels."""
    if bench.buckets is not None:
        return np.ones(len(targets))
    by_label = bench.targets(bench.dataset.train).mean(0) / np.maximum(targets.mean(0), 1.0 / len(targets))  # (K,)
    own = by_label[targets.argmax(1)]
    weights: np.ndarray = own / own.mean()
    return weights


def _canaries(engine: Engine) -> list[Sequence[int]]:
    """Of those of the guard that are short enough: every third single text, every pair."""
    apart = Canaries.sorted(engine.encoder, _short(canary_ids(engine.encoder, "guard")))
    return [*apart.singles[::3][:SINGLES], *apart.pairs]


def _short(ids: Sequence[Sequence[int]]) -> list[Sequence[int]]:
    return [text for text in ids if len(text) <= MOST_TOKENS]
