"""Episodes: small tasks drawn from the sources that look like a user's job.

An episode contains some labels of one source, a few support rows of each, and query rows of the same labels. Training
solves a readout on the support rows and learns from the query rows (Bertinetto et al. 2019, arXiv 1805.08136).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from onboard.making.curriculum.source import Source
from onboard.model.encoding import TextEncoder

FEWEST_QUERIES: Final = 2  # minimum number of query rows of a label in an episode
BINS: Final = ("low", "high"), ("low", "middle", "high")  # labels of a scale that is divided into parts


@dataclass(frozen=True)
class Episode:
    """Rows of K labels, each with at least one support row.

    Args:
        task: name of the source.
        ids: token ids of the support rows, then of the query rows.
        labels: (n + m,) label index of each row, below K.
        support: n, the number of support rows.
        names: token ids of the label words (K).
        vectors: (n + m, v) the teacher's vectors of the rows, or None.
    """

    task: str
    ids: Sequence[Sequence[int]]
    labels: np.ndarray
    support: int
    names: Sequence[Sequence[int]]
    vectors: np.ndarray | None


@dataclass(frozen=True)
class EpisodeSizes:
    """Sizes of episodes.

    Args:
        labels: maximum number of labels.
        support: minimum and maximum total of support rows; every label has at least one.
        queries: total number of query rows.
        tokens: maximum number of tokens per row.
    """

    labels: int = 8
    support: tuple[int, int] = (2, 32)
    queries: int = 20
    tokens: int = 72


class EpisodeSource:
    """A source of episodes: its rows by label, encoded once.

    Args:
        source: with its training rows.
        pool: indices of the training rows to draw from; None means all.
        vectors: (len(pool), v) the teacher's vectors of these rows, or None.

    Raises:
        ValueError: fewer than two labels have enough rows.
    """

    def __init__(
        self,
        source: Source,
        encoder: TextEncoder,
        sizes: EpisodeSizes,
        pool: np.ndarray | None = None,
        vectors: np.ndarray | None = None,
    ) -> None:
        self.name, self.rows, self._sizes, self._vectors = source.name, len(source.train), sizes, vectors
        places = np.arange(self.rows) if pool is None else pool
        rows = [source.train[place] for place in places]
        self._ids = encoder.encode([(row.text_a, row.text_b) for row in rows], sizes.tokens)
        self._encoder, self._scale = encoder, source.kind == "regression"
        values = source.values()[places]
        self._values, self._words = values, source.words
        if self._scale:
            return
        counts = np.bincount(values, minlength=len(source.words))
        self._usable = np.flatnonzero(counts > FEWEST_QUERIES)
        if len(self._usable) < 2:
            raise ValueError(f"{source.name}: fewer than two labels have {FEWEST_QUERIES + 1} rows")

    def draw(self, rng: np.random.Generator) -> Episode:
        """Draw one episode."""
        labels_of_rows, words = self._labelled(rng)
        usable = np.arange(len(words)) if self._scale else self._usable
        count = int(rng.integers(2, min(self._sizes.labels, len(usable)) + 1))
        labels = rng.choice(usable, size=count, replace=False)
        places = [rng.permutation(np.flatnonzero(labels_of_rows == label)) for label in labels]
        low, high = self._sizes.support
        most = int(np.exp(rng.uniform(np.log(max(low, count)), np.log(max(high, 2 * count)))))
        shares = np.maximum(1, np.round(rng.dirichlet(np.full(count, 20.0)) * most)).astype(int)
        support, queries = [], []
        for place, share in zip(places, shares, strict=True):
            support_count = min(int(share), len(place) - FEWEST_QUERIES)
            support.append(place[:support_count])
            queries.append(place[support_count : support_count + max(FEWEST_QUERIES, self._sizes.queries // count)])
        rows = np.concatenate([*support, *queries])
        owners = [*(np.full(len(part), index) for index, part in enumerate(support)),
                  *(np.full(len(part), index) for index, part in enumerate(queries))]  # fmt: skip
        names = [[*self._encoder.word_ids(words[label]), self._encoder.eos_id] for label in labels]
        vectors = None if self._vectors is None else self._vectors[rows]
        return Episode(
            self.name, [self._ids[row] for row in rows], np.concatenate(owners), sum(map(len, support)), names, vectors
        )

    def _labelled(self, rng: np.random.Generator) -> tuple[np.ndarray, Sequence[str]]:
        """Return the label of each row and the label words. A scale is divided into equally frequent parts."""
        if not self._scale:
            return self._values, self._words
        words = BINS[int(rng.integers(len(BINS)))]
        edges = np.quantile(self._values, np.linspace(0, 1, len(words) + 1)[1:-1])
        return np.searchsorted(edges, self._values + rng.normal(0, 1e-6, len(self._values))), words
