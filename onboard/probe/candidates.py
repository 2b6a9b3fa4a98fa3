"""The candidates of the probe, and its results about each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import cast

import numpy as np

from onboard.domain.init import MEAN, RANDOM
from onboard.domain.report import CandidateJson

MIXTURE = "mixture"
NOTHING_LEARNED = (RANDOM, MEAN)  # baselines that a chosen start must beat
NOTHING = np.empty(0, dtype=np.int64)


@dataclass(frozen=True)
class Candidate:
    """A possible initialization.

    Args:
        embedding: its name: `sst2@v1`, an anchor of the base, `random`, `mean` or `fingerprint`.
        z: its numbers (t,), float32.
        words: label words that it was trained with; may be empty.
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
    """The result of a candidate.

    Args:
        embedding: the candidate's name.
        loss: mean negative log-likelihood per row in nats, at the candidate's best temperature of at least 1.
        low, high: 95% interval of the loss.
        rows: number of rows it was measured on.
        overlap: rows that the candidate was trained on; left out unless none would remain.
        words: label word for each of the new task's labels, by the best one-to-one mapping.
        accuracy: share of rows with the right label most probable, before any training; None for regression.
        round: the last round of the race that it took part in, from 1.
        tuned: held-out loss per row after a few steps of training, in nats; None if it was not tuned.
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
        """Return the score as a JSON-compatible document."""
        return cast(CandidateJson, {**asdict(self), "words": list(self.words)})


@dataclass(frozen=True)
class ProbeResult:
    """The choice and every measured candidate's score: the chosen one first, then by last round and loss.

    Args:
        chosen: the best score; `z` is that candidate's embedding (t,).
        overlap: rows that some candidate was trained on, including candidates that were not measured for that reason.
        ties: names of candidates that the rows cannot distinguish from the chosen one.
        alarm: why no existing embedding is worth starting from; None if one is.
        weights: weights of the mixture, if it was chosen.
        known_too: whether they were measured on rows that they were trained on, because nearly all rows are known.
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
    """Return z ~ N(0, 1), like the initialization of hypernetwork training in the paper's code."""
    return Candidate(RANDOM, np.random.default_rng((seed, 64)).standard_normal(size).astype(np.float32))


def mean_candidate(embeddings: Sequence[np.ndarray]) -> Candidate:
    """Return the mean of embeddings (t,)."""
    return Candidate(MEAN, np.mean(embeddings, axis=0).astype(np.float32))


def in_sorted(values: np.ndarray, ascending: np.ndarray) -> np.ndarray:
    """Return which values (n,) occur in a sorted array, as (n,) of bool, by binary search."""
    if not len(ascending):
        return np.zeros(len(values), dtype=np.bool_)
    places = np.minimum(np.searchsorted(ascending, values), len(ascending) - 1)
    found: np.ndarray = ascending[places] == values
    return found
