"""What the probe chooses among, and what it says about each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import cast

import numpy as np

from onboard.domain.init import MEAN, RANDOM
from onboard.domain.report import CandidateJson

MIXTURE = "mixture"
NOTHING_LEARNED = (RANDOM, MEAN)  # what a chosen start must beat to be worth something
NOTHING = np.empty(0, dtype=np.int64)


@dataclass(frozen=True)
class Candidate:
    """A possible initialisation.

    Args:
        embedding: what it is called: `sst2@v1`, an anchor of the base, `random`, `mean` or `fingerprint`.
        z: its numbers (t,), float32.
        words: label words it was trained with; empty when it has none of its own.
        ordered: whether the words are the buckets of a regression.
        trained_rows: sorted 64-bit hashes of the rows that it or its ancestors were trained on.
    """

    embedding: str
    z: np.ndarray
    words: tuple[str, ...] = ()
    ordered: bool = False
    trained_rows: np.ndarray = field(default_factory=lambda: NOTHING)


@dataclass(frozen=True)
class CandidateScore:
    """How a candidate did.

    Args:
        embedding: the candidate's name.
        loss: mean negative log-likelihood per row in nats, at the candidate's best temperature of at least 1.
        low, high: 95% interval of the loss.
        rows: how many rows it was measured on.
        overlap: rows that the candidate has been trained on; left out unless none would remain.
        words: label word for each of the new task's labels, by the best one-to-one mapping.
        accuracy: share of rows whose most probable label is right, before any training; None for regression.
        round: the last round of the race that it took part in, from 1.
        tuned: held-out loss per row after a few steps of training, in nats; None for those that were not tuned.
    """

    embedding: str
    loss: float
    low: float
    high: float
    rows: int
    overlap: int
    words: tuple[str, ...]
    accuracy: float | None = None
    round: int = 1
    tuned: float | None = None

    def to_json(self) -> CandidateJson:
        """The score as a JSON-compatible document."""
        return cast(CandidateJson, {**asdict(self), "words": list(self.words)})


@dataclass(frozen=True)
class ProbeResult:
    """The choice and every measured candidate's score: the chosen one, then by how far they came and how they did.

    Args:
        chosen: the best score; `z` is that candidate's embedding (t,).
        overlap: rows that some candidate has been trained on, one that was not measured for it included.
        ties: names of those that the rows cannot tell from the chosen one.
        alarm: why no earlier task is worth starting from; None where something is.
        weights: what the mixture is made of, where it was chosen.
        known_too: whether they were measured on rows that they had been trained on, because nearly all are such.
    """

    chosen: CandidateScore
    z: np.ndarray
    scores: tuple[CandidateScore, ...]
    overlap: int = 0
    ties: tuple[str, ...] = ()
    alarm: str | None = None
    weights: dict[str, float] | None = None
    known_too: bool = False


def random_candidate(size: int, seed: int) -> Candidate:
    """z ~ N(0, 1), as hypernetwork training starts from (facts of the paper's code)."""
    return Candidate(RANDOM, np.random.default_rng((seed, 64)).standard_normal(size).astype(np.float32))


def mean_candidate(embeddings: Sequence[np.ndarray]) -> Candidate:
    """The mean of embeddings (t,)."""
    return Candidate(MEAN, np.mean(embeddings, axis=0).astype(np.float32))


def in_sorted(values: np.ndarray, ascending: np.ndarray) -> np.ndarray:
    """Which of some values (n,) stand among many in ascending order: (n,) of bool, without looking at all of them."""
    if not len(ascending):
        return np.zeros(len(values), dtype=np.bool_)
    places = np.minimum(np.searchsorted(ascending, values), len(ascending) - 1)
    present: np.ndarray = ascending[places] == values
    return present
