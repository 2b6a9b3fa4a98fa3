"""Tasks on the topic of a text: clusters of all texts and of single genres, named by common words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from onboard.making.curriculum.batch import TrainingTask, rows_within_budget
from onboard.making.curriculum.genres import GENRES
from onboard.making.curriculum.joined import JoinedTask, Mixture
from onboard.making.curriculum.rows import Members, SharedRows
from onboard.making.curriculum.texts import TextStore
from onboard.making.curriculum.topics import TopicLevel, find_level, nearest_to_centre
from onboard.making.curriculum.wording import Wording
from onboard.making.curriculum.workshop import Workshop, task_name
from onboard.model.batch import Batch

_MOST_LABELS: Final = 20
_LABELS: Final = (2, 2, 2, 3, 3, 4, 4, 5, 6, 7, 8, 10, 12, 16, 20)  # of a fixed choice; one is drawn
_TYPICAL: Final = 0.5  # share of a cluster's texts, nearest to its center, that is kept
_FEWEST_OF_A_CLUSTER: Final = 60
_SHORTEST: Final = 5  # tokens of a text with a topic
_NO_TOPICS: Final = frozenset(
    """
    himself herself itself themselves myself yourself shall thou thee didn doesn wasn isn couldn wouldn want wants
    going gone suppose supposed self item items terms term thanks refused abandoned managed seen feel felt seem
    seems seemed certain likely likewise perhaps indeed unlikely reportedly especially particularly probably simply
    really something anything nothing everything someone anyone else ways difference different definition questions
    question bottom minutes published argues argued called known named used using made makes making given gave taken
    took come comes came said says told tell replied asked looked look looks walked turned stood smiled ignored
    allow allowed mean means meant here ever feels agree penis virgin sex sexual porn naked
    """.split()  # noqa: SIM905 (a list of so many words is read as a text)
)  # words that do not name a topic
_WITHIN: Final = ("question", "review", "encyclopedia", "story", "news")
_SHARES: Final = (("subset", 0.5), ("about", 0.2), ("merged", 0.15), ("passage", 0.15))  # of the fixed choices


@dataclass(frozen=True, eq=False)
class Level:
    """One clustering of some of the plain texts.

    Args:
        where: `all` or a genre.
        topics: names, and the cluster of each text; -1 for texts that are left out.
        texts: the clustered texts (n,), as indices into the store.
        centres: mean vector of each cluster (K, 384).
    """

    where: str
    topics: TopicLevel
    texts: np.ndarray
    centres: np.ndarray

    @property
    def name(self) -> str:
        """Such as `question-40`."""
        return f"{self.where}-{len(self.topics.names)}"


class TopicTask:
    """Find the topic of a text. Every batch draws 2 to 20 (or all) topics, so only the label words define the task.

    Args:
        level: names and clusters.
        store: contains the texts.
        wording: makes the label tries.
    """

    def __init__(self, name: str, level: Level, store: TextStore, wording: Wording, seed: int) -> None:
        self.name, self.words, self.rows = name, level.topics.names, len(level.texts)
        self._level, self._store, self._wording, self._seed = level, store, wording, seed
        self._lengths = np.minimum(store.lengths[level.texts] + 1, store.limit)
        self._members = Members(level.topics.assignment, self._lengths, len(self.words))

    def batch(self, step: int, size: int) -> Batch:
        """Return the batch of a step, with newly drawn topics and texts of similar length."""
        rng = np.random.default_rng((self._seed, step))
        available = np.flatnonzero(self._members.sizes)
        count = int(rng.integers(2, min(_MOST_LABELS, len(available)) + 1))
        topics = rng.choice(available, count, replace=False)
        rows, places = self._members.draw(rng, topics.tolist(), rng.multinomial(size, np.full(count, 1 / count)))
        short = rows_within_budget(self._lengths[rows], size)
        ids = [self._store.row([text]) for text in self._level.texts[rows[:short]].tolist()]
        trie = self._wording.trie([self.words[topic] for topic in topics])
        return Batch(list(ids), trie, np.eye(count, dtype=np.float32)[places[:short]])


def topics(workshop: Workshop) -> list[TrainingTask]:
    """Return one task per level that draws topics per batch, and tasks with fixed topics for the rest of the count."""
    levels = _levels(workshop)
    made: list[TrainingTask] = [
        TopicTask(name := f"topics-any-{level.name}", level, workshop.store, workshop.wording, workshop.seed_of(name))
        for level in levels
    ]
    remaining = max(0, workshop.counts.topics.tasks - len(made)) if levels else 0
    for way, share in _SHARES:
        for number in range(round(share * remaining)):
            rng = workshop.random(f"topics {way} {number}")
            made += _MAKERS[way](workshop, levels[int(rng.integers(len(levels)))], rng)
    return made


def _levels(workshop: Workshop) -> list[Level]:
    wording, levels = workshop.wording, []
    named = [place for place, word in enumerate(wording.words) if word not in _NO_TOPICS]
    if not named:
        return []
    words, word_vectors = [wording.words[place] for place in named], wording.vectors[named]
    presence = workshop.store.presence(workshop.plain, [wording.ids(word)[0] for word in words])
    fitting = workshop.store.lengths[workshop.plain] >= _SHORTEST
    kinds = {"all": np.flatnonzero(fitting)}
    kinds |= {kind: np.flatnonzero(fitting & (workshop.genres == GENRES.index(kind))) for kind in _WITHIN}
    for where, places in kinds.items():
        sizes = workshop.counts.topic_levels if where == "all" else workshop.counts.topic_levels[1:-1]
        for size in sizes:
            if len(places) < size * _FEWEST_OF_A_CLUSTER or len(words) < 4 * size:
                continue
            vectors = workshop.vectors[places].astype(np.float32)
            level = find_level(vectors, words, word_vectors, size, workshop.seed, presence[places])
            typical = nearest_to_centre(vectors, level.assignment, _TYPICAL)
            topics = TopicLevel(level.names, np.where(typical, level.assignment, -1))
            centres = np.stack([vectors[level.assignment == topic].mean(0) for topic in range(size)])
            levels.append(Level(where, topics, workshop.plain[places], centres))
    return levels


def _choice(level: Level, rng: np.random.Generator, count: int) -> np.ndarray:
    """Return a number of clusters, drawn randomly or as the neighbors of one, which are harder to distinguish."""
    clusters = len(level.topics.names)
    count = min(count, clusters)
    if rng.random() < 0.5:
        return rng.choice(clusters, count, replace=False)
    first = int(rng.integers(clusters))
    near = np.argsort(-(level.centres @ level.centres[first]))[: 2 * count]
    others = rng.choice(near[near != first], count - 1, replace=False)
    return np.array([first, *others])


def _subset(workshop: Workshop, level: Level, rng: np.random.Generator) -> Sequence[TrainingTask]:
    topics = _choice(level, rng, int(rng.choice(_LABELS)))
    words = [level.topics.names[topic] for topic in topics]
    stem = f"topics-{level.name}"
    return workshop.tasks(stem, [words], _rows(workshop, task_name(stem, words), level, [[topic] for topic in topics]))


def _merged(workshop: Workshop, level: Level, rng: np.random.Generator) -> Sequence[TrainingTask]:
    """Return tasks in which each label covers two neighboring clusters and is named after the first."""
    clusters = len(level.topics.names)
    count = min(int(rng.choice((2, 2, 3, 4))), clusters // 4)
    if count < 2:
        return []
    groups: list[list[int]] = []
    free = set(range(clusters))
    for _ in range(count):
        first = int(rng.choice(sorted(free)))
        near = [int(topic) for topic in np.argsort(-(level.centres @ level.centres[first])) if int(topic) in free]
        groups.append([first, next(topic for topic in near if topic != first)])
        free -= set(groups[-1])
    words = [level.topics.names[first] for first, _ in groups]
    stem = f"topics-{level.name}-merged"
    return workshop.tasks(stem, [words], _rows(workshop, task_name(stem, words), level, groups))


def _about(workshop: Workshop, level: Level, rng: np.random.Generator) -> Sequence[TrainingTask]:
    """Return tasks of one topic against all others, including its neighbors."""
    topic = int(rng.integers(len(level.topics.names)))
    word = level.topics.names[topic]
    others = [other for other in range(len(level.topics.names)) if other != topic]
    wordings = [("other", word), (f"not {word}", word), ("no", "yes"), ("false", "true")]
    words = wordings[int(rng.integers(len(wordings)))]
    stem = f"topics-{level.name}-about-{word}"
    return workshop.tasks(stem, [words], _rows(workshop, stem, level, [others, [topic]]))


def _passage(workshop: Workshop, level: Level, rng: np.random.Generator) -> Sequence[TrainingTask]:
    """Return tasks on several joined texts of one topic."""
    topics = _choice(level, rng, int(rng.choice(_LABELS[:10])))
    words = [level.topics.names[index] for index in topics]
    members = [level.texts[level.topics.assignment == index] for index in topics]
    lengths = workshop.store.lengths
    members = [texts[lengths[texts] <= workshop.store.limit // 2] for texts in members]
    if not workshop.wording.fit(words) or min(map(len, members)) < _FEWEST_OF_A_CLUSTER // 4:
        return []
    name = task_name(f"topics-{level.name}-passage", words)
    trie, seed = workshop.wording.trie(words), workshop.seed_of(name)
    return [JoinedTask(name, words, Mixture(workshop.store, members, np.eye(len(words)), (2, 6)), trie, seed)]


def _rows(workshop: Workshop, name: str, level: Level, groups: Sequence[Sequence[int]]) -> SharedRows | None:
    label_of = np.full(len(level.topics.names) + 1, -1)  # the last entry is for texts that are left out
    for label, group in enumerate(groups):
        label_of[np.array(group)] = label
    return workshop.rows(name, level.texts, None, label_of[level.topics.assignment], len(groups))


_MAKERS: Final = {"subset": _subset, "about": _about, "merged": _merged, "passage": _passage}
