"""Episodes: small tasks cut out of the sources, as a user's job will look.

An episode draws some labels of one source, a few support rows of each and query rows of the same labels. Whoever trains
the encoder solves a readout on the support rows and learns from the query rows (Bertinetto et al. 2019,
arXiv 1805.08136).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from onboard.making.curriculum.source import Source
from onboard.model.encoding import TextEncoder

FEWEST_QUERIES: Final = 2  # rows of a label beyond its support, without which it enters no episode
BINS: Final = ("low", "high"), ("low", "middle", "high")  # labels of a scale that is cut into parts


@dataclass(frozen=True)
class Episode:
    """Rows of K labels, each label with at least one support row.

    Args:
        task: name of the source.
        ids: token ids of the support rows, then of the query rows.
        labels: (n + m,) which of the K labels each row has.
        support: n, how many of the rows are support rows.
        names: token ids of the labels' words (K).
        vectors: (n + m, v) the teacher's vectors of the rows; None where the teacher does not speak for them.
    """

    task: str
    ids: Sequence[Sequence[int]]
    labels: np.ndarray
    support: int
    names: Sequence[Sequence[int]]
    vectors: np.ndarray | None


@dataclass(frozen=True)
class EpisodeSizes:
    """How large episodes are.

    Args:
        labels: most labels of an episode.
        support: fewest and most support rows in all; every label has one at least.
        queries: query rows in all.
        tokens: most tokens of a row.
    """

    labels: int = 8
    support: tuple[int, int] = (2, 32)
    queries: int = 20
    tokens: int = 72


class EpisodeSource:
    """A source of episodes: its rows by label, encoded once.

    Args:
        source: with its training rows.
        encoder: of the base.
        sizes: of the episodes.
        pool: the rows that are drawn from, by their place among the training rows; None means all.
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
        """One episode."""
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
            taken = min(int(share), len(place) - FEWEST_QUERIES)
            support.append(place[:taken])
            queries.append(place[taken : taken + max(FEWEST_QUERIES, self._sizes.queries // count)])
        rows = np.concatenate([*support, *queries])
        owners = [*(np.full(len(part), index) for index, part in enumerate(support)),
                  *(np.full(len(part), index) for index, part in enumerate(queries))]  # fmt: skip
        names = [[*self._encoder.word_ids(words[label]), self._encoder.eos_id] for label in labels]
        vectors = None if self._vectors is None else self._vectors[rows]
        return Episode(
            self.name, [self._ids[row] for row in rows], np.concatenate(owners), sum(map(len, support)), names, vectors
        )

    def _labelled(self, rng: np.random.Generator) -> tuple[np.ndarray, Sequence[str]]:
        """The label of each row and the labels' words; a scale is cut into equally frequent parts."""
        if not self._scale:
            return self._values, self._words
        words = BINS[int(rng.integers(len(BINS)))]
        edges = np.quantile(self._values, np.linspace(0, 1, len(words) + 1)[1:-1])
        return np.searchsorted(edges, self._values + rng.normal(0, 1e-6, len(self._values))), words
