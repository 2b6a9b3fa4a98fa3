"""The tasks that a base is trained on: sources, the same under other label words, and made tasks of meaning.

A hypernetwork that has seen eight tasks knows eight points of the space of task embeddings; renamed and made tasks turn
the points into a space in which a new embedding can be found.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np

from onboard.data.regression import BUCKETS, Buckets
from onboard.data.verbaliser import verbalise
from onboard.domain.dataset import Example, Kind, Label, in_canonical_order, label_key
from onboard.model.encoding import TextEncoder
from onboard.model.scoring import LabelTrie
from onboard.pretrain.batches import LengthBuckets
from onboard.pretrain.recipe import CurriculumCounts
from onboard.pretrain.sentences import read_split
from onboard.pretrain.topics import TopicLevel, Topics


@dataclass(frozen=True)
class Batch:
    """One batch of one task.

    Args:
        ids: token ids of each text (B).
        trie: label trie of the task.
        targets: distribution over the labels (B, K).
    """

    ids: list[Sequence[int]]
    trie: LabelTrie
    targets: np.ndarray


class TrainingTask(Protocol):
    """Something that a base learns: a name, a size, and batches drawn from the step alone."""

    name: str
    rows: int

    def batch(self, step: int, size: int) -> Batch:
        """The batch of a step."""


@dataclass(frozen=True)
class Source:
    """A source task as it is shipped with the base.

    Args:
        name: the folder's name.
        kind: classification or regression.
        labels: class labels in canonical order; empty for regression.
        words: word per label, or per bucket.
        low, high: range of a regression, else None.
        train: its training rows.
    """

    name: str
    kind: Kind
    labels: tuple[Label, ...]
    words: tuple[str, ...]
    low: float | None
    high: float | None
    train: tuple[Example, ...]

    def targets(self) -> np.ndarray:
        """One distribution over labels or buckets per training row (N, K), float32."""
        if self.low is not None and self.high is not None:
            buckets = Buckets(self.low, self.high)
            return np.array([buckets.soft_target(float(row.label)) for row in self.train], dtype=np.float32)
        position = {label_key(label): index for index, label in enumerate(self.labels)}
        return np.eye(len(self.labels), dtype=np.float32)[[position[label_key(row.label)] for row in self.train]]


def read_source(folder: Path) -> Source:
    """A source from its folder; numbers that are no integers and of more than 20 kinds make it a regression."""
    rows = tuple(read_split(folder, "train"))
    labels = in_canonical_order(row.label for row in rows)
    if _are_scores(labels):
        values = [float(row.label) for row in rows]
        low, high = min(values), max(values)
        return Source(folder.name, "regression", (), Buckets(low, high).words, low, high, rows)
    return Source(folder.name, "classification", labels, verbalise(labels), None, None, rows)


def _are_scores(labels: Sequence[Label]) -> bool:
    try:
        values = {float(label) for label in labels}
    except ValueError:
        return False
    return len(values) >= BUCKETS and any(value % 1 for value in values)


class FixedTask:
    """Rows with a fixed label set.

    Args:
        name: of the task.
        sequences: token ids of each row.
        targets: (N, K).
        words: K label words.
        encoder: of the base.
        seed: base of every draw.
    """

    def __init__(
        self,
        name: str,
        sequences: Sequence[Sequence[int]],
        targets: np.ndarray,
        words: Sequence[str],
        encoder: TextEncoder,
        seed: int,
    ) -> None:
        self.name = name
        self.rows = len(sequences)
        self.words = tuple(words)
        self._sequences, self._targets = sequences, targets
        self._trie = LabelTrie.build([encoder.label_ids(word) for word in words])
        self._buckets = LengthBuckets(sequences, seed)

    def batch(self, step: int, size: int) -> Batch:
        """The batch of a step."""
        chosen = self._buckets.draw(step, size)
        return Batch([self._sequences[index] for index in chosen], self._trie, self._targets[chosen])


class TopicTask:
    """Which of a few topics a text is about; every batch draws 2 to 8 (or all) topics anew, so only the words tell.

    Args:
        name: of the task.
        sequences: token ids of each text.
        level: names and clusters.
        encoder: of the base.
        seed: base of every draw.
    """

    def __init__(
        self, name: str, sequences: Sequence[Sequence[int]], level: TopicLevel, encoder: TextEncoder, seed: int
    ) -> None:
        self.name = name
        self.rows = len(sequences)
        self._sequences, self._level, self._encoder, self._seed = sequences, level, encoder, seed
        self._members = [np.flatnonzero(level.assignment == topic) for topic in range(len(level.names))]
        self._lengths = np.array([len(sequence) for sequence in sequences])

    def batch(self, step: int, size: int) -> Batch:
        """The batch of a step: its own topics, texts of like length."""
        rng = np.random.default_rng((self._seed, step))
        count = int(rng.integers(2, min(8, len(self._members)) + 1))
        topics = rng.choice(len(self._members), count, replace=False)
        pool = np.concatenate([rng.choice(self._members[topic], size) for topic in topics])
        pool = pool[np.argsort(self._lengths[pool], kind="stable")]
        start = int(rng.integers(0, len(pool) - size + 1))
        chosen = pool[start : start + size]
        trie = LabelTrie.build([self._encoder.label_ids(self._level.names[topic]) for topic in topics])
        targets = (self._level.assignment[chosen][:, None] == topics[None]).astype(np.float32)
        return Batch([self._sequences[index] for index in chosen], trie, targets)


@dataclass(frozen=True)
class Curriculum:
    """All training tasks in groups, each with its share of the steps.

    Args:
        groups: tasks and share. The sources come first, in their order, then one task per topic level, then the made
            ones; empty groups are left out.
    """

    groups: tuple[tuple[tuple[TrainingTask, ...], float], ...]

    @property
    def plain(self) -> Curriculum:
        """Sources and topic levels only: what a backbone can tell apart by the label words."""
        return Curriculum(self.groups[:2])

    @property
    def tasks(self) -> list[TrainingTask]:
        """The tasks of all groups, in order."""
        return [task for group, _ in self.groups for task in group]


def build_curriculum(
    sources: Sequence[Source],
    texts: Sequence[str],
    topics: Topics,
    counts: CurriculumCounts,
    encoder: TextEncoder,
    seed: int,
) -> Curriculum:
    """Sources, topics, renamed sources and choices of topics."""
    rng = np.random.default_rng((seed, 17))
    encoded = [encoder.encode([(row.text_a, row.text_b) for row in source.train]) for source in sources]
    rows = [
        _Rows(source, ids, source.targets(), encoder, seed + index)
        for index, (source, ids) in enumerate(zip(sources, encoded, strict=True))
    ]
    passages = encoder.encode([(text, None) for text in texts])
    levels = [
        TopicTask(f"topics-{len(level.names)}", passages, level, encoder, seed + 100 + index)
        for index, level in enumerate(topics.levels)
    ]
    renamed = [task for each in rows for task in each.renamed(sorted(topics.token_of), counts.renamings, rng)]
    subsets = _topic_subsets(passages, topics, counts.topic_subsets, encoder, rng)
    groups: list[tuple[Sequence[TrainingTask], float]] = [
        ([each.plain() for each in rows], counts.share_of_sources),
        (levels, counts.share_of_topics),
        (renamed, counts.share_of_renamed),
        (subsets, counts.share_of_subsets),
    ]
    return Curriculum(tuple((tuple(group), share) for group, share in groups if group))


@dataclass(frozen=True)
class _Rows:
    """A source's rows as token ids, ready to be a task under any label words."""

    source: Source
    ids: list[list[int]]
    targets: np.ndarray
    encoder: TextEncoder
    seed: int

    def plain(self) -> FixedTask:
        return FixedTask(self.source.name, self.ids, self.targets, self.source.words, self.encoder, self.seed)

    def renamed(self, names: Sequence[str], count: int, rng: np.random.Generator) -> list[FixedTask]:
        """The task with its words swapped round, and `count` times with other words; nothing for a regression."""
        if self.source.kind == "regression":
            return []
        words = list(self.source.words)
        others = [[words[-1], *words[:-1]]]
        others += [[names[index] for index in rng.choice(len(names), len(words), replace=False)] for _ in range(count)]
        return [
            FixedTask(
                f"{self.source.name}-{'-'.join(each)}", self.ids, self.targets, each, self.encoder, self.seed + 200 + n
            )
            for n, each in enumerate(others)
        ]


def _topic_subsets(
    passages: Sequence[Sequence[int]], topics: Topics, count: int, encoder: TextEncoder, rng: np.random.Generator
) -> list[FixedTask]:
    made = []
    for number in range(count):
        level = topics.levels[int(rng.integers(len(topics.levels)))]
        chosen = rng.choice(len(level.names), int(rng.integers(2, min(8, len(level.names)) + 1)), replace=False)
        members = np.flatnonzero(np.isin(level.assignment, chosen))
        targets = (level.assignment[members][:, None] == chosen[None]).astype(np.float32)
        words = [level.names[topic] for topic in chosen]
        sequences = [passages[int(index)] for index in members]
        made.append(FixedTask("topics-" + "-".join(words), sequences, targets, words, encoder, 1000 + number))
    return made
