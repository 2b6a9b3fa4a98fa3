"""The candidates of the probe, and its results about each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from onboard.contract.report import CandidateScore
from onboard.domain.init import MEAN, RANDOM

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
