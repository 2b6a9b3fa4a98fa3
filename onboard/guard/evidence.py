"""The evidence about a task: its held-out rows, or its texts and canaries, which need no labels."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from onboard.contract.guard import GuardEvidence
from onboard.guard.settings import GuardSettings
from onboard.model.encoding import TextEncoder
from onboard.model.protected import ProtectedTask

FEWEST_TEXTS = 8  # per group; the mean divergence of fewer is too imprecise
OWN, SINGLE, PAIR = 0, 1, 2  # groups of texts


@dataclass(frozen=True)
class Canaries:
    """Token ids of canaries, separated into single texts and pairs: tasks hardly react to the other form."""

    singles: Sequence[Sequence[int]]
    pairs: Sequence[Sequence[int]]

    @classmethod
    def sorted(cls, encoder: TextEncoder, canaries: Sequence[Sequence[int]]) -> Canaries:
        """Separate canaries by the separator token."""
        shapes: dict[bool, list[Sequence[int]]] = {False: [], True: []}
        for ids in canaries:
            shapes[encoder.is_pair(ids)].append(ids)
        return cls(shapes[False], shapes[True])


@dataclass(frozen=True)
class Material:
    """The evidence about one task.

    Args:
        task: the task.
        evidence: kind of evidence that decides; None if there is none.
        ids: token ids of n rows and texts, labeled ones first.
        targets: (m, K) of the labeled ones.
        group: (n,) group of each: OWN (including labeled ones), SINGLE or PAIR.
        half: (n,) half of each, 0 or 1.
    """

    task: ProtectedTask
    evidence: GuardEvidence | None
    ids: list[Sequence[int]]
    targets: np.ndarray
    group: np.ndarray
    half: np.ndarray

    def of(self, half: int | None) -> np.ndarray:
        """Return indices of the rows of a half; of all rows for None."""
        return np.arange(len(self.ids)) if half is None else np.flatnonzero(self.half == half)


def gather(task: ProtectedTask, canaries: Canaries, settings: GuardSettings, seed: int) -> Material:
    """Collect the evidence about a task: all its held-out rows and, if they are too few, its texts and canaries.

    Each task gets its own draw of canaries. Groups of too few texts are left out.

    Args:
        task: the task.
        canaries: all canaries.
        settings: how many rows decide, and the number of texts per group.
        seed: seed of the draw and of the halves, which are stratified by label and group.
    """
    rng = np.random.default_rng((seed, zlib.crc32(task.name.encode())))
    rows = [] if task.rows is None else list(task.rows.ids)
    targets = np.empty((0, task.trie.labels)) if task.rows is None else np.asarray(task.rows.targets, dtype=np.float64)
    labels = targets.argmax(1) if len(targets) else np.empty(0, dtype=np.int64)
    if len(rows) >= settings.fewest_rows:
        return Material(task, "held-out rows", rows, targets, np.zeros_like(labels), _halves([labels], rng))
    own = _some(task.texts, settings.texts - len(rows), rng)
    if len(rows) + len(own) < FEWEST_TEXTS:
        rows, own, targets, labels = [], [], targets[:0], labels[:0]
    others = [_some(texts, settings.texts, rng) for texts in (canaries.singles, canaries.pairs)]
    singles, pairs = (texts if len(texts) >= FEWEST_TEXTS else [] for texts in others)
    ids = [*rows, *own, *singles, *pairs]
    group = np.repeat([OWN, SINGLE, PAIR], [len(rows) + len(own), len(singles), len(pairs)])
    strata = [labels, *(np.zeros(len(texts), dtype=np.int64) for texts in (own, singles, pairs))]
    return Material(task, "divergence" if ids else None, ids, targets, group, _halves(strata, rng))


def _some(texts: Sequence[Sequence[int]], most: int, rng: np.random.Generator) -> list[Sequence[int]]:
    return [texts[place] for place in rng.permutation(len(texts))[: max(0, most)]]


def _halves(strata: Sequence[np.ndarray], rng: np.random.Generator) -> np.ndarray:
    """Return a half for every row of the strata, (n,): in each stratum they differ by at most one row."""
    chosen = np.empty(sum(map(len, strata)), dtype=np.int64)
    start = turn = 0
    for stratum in strata:
        for value in np.unique(stratum):
            rows = start + rng.permutation(np.flatnonzero(stratum == value))
            chosen[rows] = (turn + np.arange(len(rows))) % 2
            turn += len(rows)
        start += len(stratum)
    return chosen
