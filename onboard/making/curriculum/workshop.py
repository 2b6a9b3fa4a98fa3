"""The data that all kinds of tasks use, and the construction of tasks from rows and label words."""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from onboard.domain.names import MOST_LETTERS
from onboard.making.curriculum.counts import CurriculumCounts
from onboard.making.curriculum.genres import genres_of
from onboard.making.curriculum.rows import RowsTask, SharedRows
from onboard.making.curriculum.source import Source
from onboard.making.curriculum.texts import TextStore
from onboard.making.curriculum.wording import Wording
from onboard.model.encoding import TextEncoder

_NO_NAME = re.compile(r"[^a-z0-9_-]")
_FEWEST_OF_A_CLASS = 20


@dataclass(frozen=True)
class PlainTexts:
    """Plain texts with the teacher's vectors.

    Args:
        texts: texts of the sources, sentences and passages of a corpus (N).
        vectors: the teacher's unit vectors of the texts (N, 384), float16.
        words: common words of the language (W).
        word_vectors: the teacher's vectors of the words (W, 384).
    """

    texts: Sequence[str]
    vectors: np.ndarray
    words: Sequence[str]
    word_vectors: np.ndarray


class Workshop:
    """Texts, sources and words, shared by all tasks.

    Args:
        sources: labeled tasks.
        material: plain texts.
        counts: number of tasks and share of each kind.
    """

    def __init__(
        self, sources: Sequence[Source], material: PlainTexts, counts: CurriculumCounts, encoder: TextEncoder, seed: int
    ) -> None:
        self.sources, self.counts, self.seed = sources, counts, seed
        self.store = TextStore(encoder)
        self.wording = Wording(encoder, material.words, material.word_vectors)
        trained = {text for source in sources for row in source.train for text in (row.text_a, row.text_b) if text}
        held_out = {
            text for source in sources for row in source.validation for text in (row.text_a, row.text_b) if text
        }
        usable = [index for index, text in enumerate(material.texts) if text in trained or text not in held_out]
        places = self.store.add([material.texts[index] for index in usable])
        self.plain, first = np.unique(places, return_index=True)  # indices into the store, ascending from 0
        self.vectors = material.vectors[np.array(usable, dtype=np.int64)[first]]  # (len(plain), 384)
        self._of_source = {source.name: self._rows_of(source) for source in sources}

    def _rows_of(self, source: Source) -> SharedRows:
        left = self.store.add([row.text_a for row in source.train])
        right = self.store.add([row.text_b or "" for row in source.train]) if source.pairs else None
        values = source.values()
        if source.kind == "regression":
            none = np.zeros(len(left), dtype=np.int64)
            return SharedRows(self.store, left, right, none, len(source.words), 1.0, source.targets())
        return SharedRows(self.store, left, right, values, len(source.labels), 1.0)

    def of_source(self, source: Source) -> SharedRows:
        """Return a source's original rows."""
        return self._of_source[source.name]

    @cached_property
    def genres(self) -> np.ndarray:
        """Index in GENRES of each plain text (len(plain),), -1 if unknown."""
        return genres_of([self.store[index] for index in self.plain.tolist()], self.sources)

    def random(self, name: str) -> np.random.Generator:
        """Return the random generator for a name."""
        return np.random.default_rng((self.seed, zlib.crc32(name.encode())))

    def rows(
        self, name: str, left: np.ndarray, right: np.ndarray | None, classes: np.ndarray, count: int
    ) -> SharedRows | None:
        """Return the rows of a derived task: those with a class, limited per class; None if there are too few.

        Args:
            name: seeds the choice of rows.
            left, right: indices into the store (N,).
            classes: label of each row (N,), -1 for none.
            count: number of labels.
        """
        rng = self.random(name)
        most = -(-self.counts.most_rows // count)
        members = [rng.permutation(np.flatnonzero(classes == label))[:most] for label in range(count)]
        sizes = [len(member) for member in members]
        fewest = min(_FEWEST_OF_A_CLASS, self.counts.fewest_rows // 2)
        if sum(sizes) < self.counts.fewest_rows or min(sizes) < fewest:
            return None
        indices = np.concatenate(members)
        return SharedRows(self.store, left[indices], None if right is None else right[indices], classes[indices], count)

    def tasks(self, stem: str, wordings: Sequence[Sequence[str]], rows: SharedRows | None) -> list[RowsTask]:
        """Return one task per wording that the tokenizer knows, named by stem and words."""
        if rows is None:
            return []
        return [self.task(task_name(stem, words), words, rows) for words in self.wording.fitting(wordings)]

    def task(self, name: str, words: Sequence[str], rows: SharedRows) -> RowsTask:
        """Return a task of rows and label words that fit."""
        return RowsTask(name, words, rows, self.wording.trie(words), self.seed_of(name))

    def seed_of(self, name: str) -> int:
        """Return the seed of a task's batches."""
        return zlib.crc32(f"{self.seed} {name}".encode())


def recoded(classes: np.ndarray, chosen: Sequence[int]) -> np.ndarray:
    """Return the index in `chosen` of each row's class (N,), -1 for all others."""
    places = np.full(len(classes), -1)
    for place, label in enumerate(chosen):
        places[classes == label] = place
    return places


def task_name(stem: str, words: Sequence[str]) -> str:
    """Return a task name: `form-tense` and (past, present) → `form-tense-past-present`.

    An invalid name is shortened and gets a checksum.
    """
    spelled = "-".join([stem, *words]).replace(" ", "_")
    name = _NO_NAME.sub("_", spelled.lower())
    if name == spelled and len(name) <= MOST_LETTERS:
        return name
    suffix = f"-{zlib.crc32(repr((stem, *words)).encode()):08x}"
    return name[: MOST_LETTERS - len(suffix)].rstrip("-_") + suffix
