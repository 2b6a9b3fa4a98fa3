"""Long texts: several rows of one class joined, and pairs with one side embedded among other sentences."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from onboard.making.curriculum.batch import FEWEST_ROWS, TOKENS_PER_ROW
from onboard.making.curriculum.genres import GENRES
from onboard.making.curriculum.rows import SharedRows
from onboard.making.curriculum.source import Source
from onboard.making.curriculum.synonyms import synonyms
from onboard.making.curriculum.texts import TextStore
from onboard.making.curriculum.workshop import Workshop, task_name
from onboard.model.batch import Batch
from onboard.model.scoring import LabelTrie

_PASSAGE_SIDE: Final = {"mnli": "left", "rte": "left", "qnli": "right"}  # the side that contains the evidence
_MOST_SENTENCES = 6
_NO_TEXTS: Final = np.zeros(0, dtype=np.int32)


@dataclass(frozen=True)
class Stop:
    """A full stop between the pieces of a passage.

    Args:
        piece: its index in the store.
        after: pieces without punctuation at the end, which it follows.
    """

    piece: int
    after: frozenset[int]


@dataclass(frozen=True, eq=False)
class Mixture:
    """How a row is composed of several texts.

    Args:
        store: contains the texts.
        members: texts of each class of pieces (C), as indices into the store.
        blends: share of each class of pieces in a row of each label (K, C).
        pieces: minimum and maximum number of pieces per row.
        stop: the full stop after pieces without punctuation, or None.
    """

    store: TextStore
    members: Sequence[np.ndarray]
    blends: np.ndarray
    pieces: tuple[int, int]
    stop: Stop | None = None

    def row(self, rng: np.random.Generator, label: int, pieces: int) -> list[int]:
        """Return the token ids of a row with this many pieces in random order."""
        ends = np.round(np.cumsum(self.blends[label]) * pieces).astype(int)
        counts = np.diff(ends, prepend=0)
        drawn = [
            members[rng.integers(len(members), size=count)]
            for members, count in zip(self.members, counts.tolist(), strict=True)
        ]
        pieces_in_order = rng.permutation(np.concatenate(drawn)).tolist()
        if self.stop is not None:
            stop = self.stop
            pieces_in_order = [
                part for piece in pieces_in_order for part in ((piece, stop.piece) if piece in stop.after else (piece,))
            ]
        return self.store.row(pieces_in_order)


class JoinedTask:
    """Rows of several texts of one class in random order. Every batch draws the number of texts.

    Args:
        mixture: how rows are composed.
    """

    def __init__(self, name: str, words: Sequence[str], mixture: Mixture, trie: LabelTrie, seed: int) -> None:
        self.name, self.words = name, tuple(words)
        self.rows = sum(len(member) for member in mixture.members)
        self._mixture, self._trie, self._seed = mixture, trie, seed

    def batch(self, step: int, size: int) -> Batch:
        """Return the batch of a step."""
        rng = np.random.default_rng((self._seed, step))
        fewest, most = self._mixture.pieces
        pieces = int(rng.integers(fewest, most + 1))
        labels = rng.integers(len(self.words), size=size)
        ids = _within_budget((self._mixture.row(rng, label, pieces) for label in labels), size)
        return Batch(ids, self._trie, np.eye(len(self.words), dtype=np.float32)[labels[: len(ids)]])


class ExtendedTask:
    """A pair task with its evidence embedded among other sentences, before and after it, up to the encoder's limit.

    Args:
        side: the text to extend, `left` or `right`.
        fillers: other sentences, as indices into the store.
    """

    def __init__(
        self,
        name: str,
        words: Sequence[str],
        rows: SharedRows,
        side: str,
        fillers: np.ndarray,
        trie: LabelTrie,
        seed: int,
    ) -> None:
        self.name, self.words, self.rows = name, tuple(words), len(rows)
        self._rows, self._side, self._fillers, self._trie, self._seed = rows, side, fillers, trie, seed

    def batch(self, step: int, size: int) -> Batch:
        """Return the batch of a step."""
        rng = np.random.default_rng((self._seed, step))
        rows = self._rows.draw(rng, size)
        sentences = int(rng.integers(1, _MOST_SENTENCES + 1))
        ids = _within_budget((self._row(rng, row, sentences) for row in rows.tolist()), size)
        return Batch(ids, self._trie, self._rows.targets(rows[: len(ids)]))

    def _row(self, rng: np.random.Generator, row: int, sentences: int) -> list[int]:
        store, right = self._rows.store, self._rows.right
        if right is None:
            raise ValueError(f"{self.name}: single texts have no side to extend")
        drawn = self._fillers[rng.integers(len(self._fillers), size=sentences)]
        room = store.limit - int(self._rows.lengths[row])
        fitting = drawn[np.cumsum(store.lengths[drawn]) <= room]
        before = int(rng.integers(len(fitting) + 1))
        left_pieces, right_pieces = [int(self._rows.left[row])], [int(right[row])]
        extended = left_pieces if self._side == "left" else right_pieces
        extended[:] = [*fitting[:before].tolist(), *extended, *fitting[before:].tolist()]
        return store.row(left_pieces, right_pieces)


def _within_budget(rows: Iterable[list[int]], size: int) -> list[Sequence[int]]:
    """Return the first rows that fit into a batch's token budget. Later rows are not generated."""
    pieces: list[Sequence[int]] = []
    longest = 0
    for row in rows:
        longest = max(longest, len(row))
        if len(pieces) >= FEWEST_ROWS and longest * (len(pieces) + 1) > size * TOKENS_PER_ROW:
            break
        pieces.append(row)
    return pieces


def joined(workshop: Workshop) -> list[JoinedTask | ExtendedTask]:
    """Return all tasks of this kind."""
    made: list[JoinedTask | ExtendedTask] = []
    for source in workshop.sources:
        if source.kind == "classification" and not source.pairs:
            made += _passages(workshop, source)
        elif source.name in _PASSAGE_SIDE:
            made += _extended(workshop, source)
    return made


def _passages(workshop: Workshop, source: Source) -> list[JoinedTask]:
    rows, count = workshop.of_source(source), len(source.labels)
    members = [rows.left[rows.classes == label] for label in range(count)]
    of_story = workshop.plain[workshop.genres == GENRES.index("story")]
    whole, most = np.eye(count), 0.75 * np.eye(count) + 0.25 / (count - 1) * (1 - np.eye(count))
    unended = {
        index for member in (*members, of_story) for index in member.tolist() if workshop.store[index][-1:].isalnum()
    }
    stop = Stop(int(workshop.store.add(["."])[0]), frozenset(unended))
    usual = [source.words, *zip(*map(synonyms, source.words), strict=False)]
    store = workshop.store
    ways: list[tuple[str, Mixture, Sequence[Sequence[str]]]] = [
        ("few", Mixture(store, members, whole, (2, 4), stop), usual[:3]),
        ("many", Mixture(store, members, whole, (4, 12), stop), [usual[0], *usual[3:5]]),
        ("unmarked", Mixture(store, members, whole, (2, 8)), [usual[0], *usual[5:6]]),
        ("mostly", Mixture(store, members, most, (4, 12), stop), [usual[0], *usual[1:3]]),
    ]
    if len(of_story):
        set_among = np.hstack([0.5 * whole, np.full((count, 1), 0.5)])
        ways.append(("told", Mixture(store, [*members, of_story], set_among, (2, 6), stop), usual[:2]))
    if count == 2:
        thirds = np.vstack([whole, np.full((1, count), 0.5)])
        mixed = [(*words, "mixed") for words in usual[:3]]
        ways.append(("mixed", Mixture(store, members, thirds, (2, 8), stop), mixed))
    return [
        JoinedTask(
            name := task_name(f"joined-{source.name}-{way}", words), words, mixture, workshop.wording.trie(words),
            workshop.seed_of(name),
        )
        for way, mixture, wordings in ways
        for words in workshop.wording.fitting(wordings)
    ]  # fmt: skip


def _extended(workshop: Workshop, source: Source) -> list[ExtendedTask]:
    rows, side = workshop.of_source(source), _PASSAGE_SIDE[source.name]
    evidence = rows.left if side == "left" else rows.right
    fillers = _NO_TEXTS if evidence is None else np.unique(evidence)
    if not len(fillers):
        return []
    usual = [source.words, *zip(*map(synonyms, source.words), strict=False)]
    made = []
    for words in workshop.wording.fitting(usual)[:4]:
        name = task_name(f"extended-{source.name}", words)
        trie, seed = workshop.wording.trie(words), workshop.seed_of(name)
        made.append(ExtendedTask(name, words, rows, side, fillers, trie, seed))
    return made
