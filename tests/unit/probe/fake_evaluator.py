"""An evaluator whose losses are given, for the race."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

import numpy as np

from onboard.contract.report import CandidateScore
from onboard.probe.candidates import Candidate
from onboard.probe.evaluator import MINIMUM_ROWS, Evaluator, interval


class FakeEvaluator:
    """Losses (n,) by candidate's name; NaN where it knows the row. `asked` keeps the rows of every measurement."""

    def __init__(self, losses: Mapping[str, np.ndarray]) -> None:
        self._losses = losses
        self.asked: list[tuple[tuple[str, ...], tuple[int, ...]]] = []

    def known(self, candidate: Candidate, rows: np.ndarray) -> np.ndarray:
        return np.isnan(self._losses[candidate.embedding][rows])

    def can_measure(self, candidate: Candidate, rows: np.ndarray) -> bool:
        return int((~self.known(candidate, rows)).sum()) >= min(MINIMUM_ROWS, len(rows))

    def measure(self, candidates: Sequence[Candidate], rows: np.ndarray, known_too: bool = False) -> None:
        self.asked.append((tuple(candidate.embedding for candidate in candidates), tuple(rows.tolist())))

    def losses(self, candidate: Candidate, rows: np.ndarray, known_too: bool = False) -> np.ndarray:
        return self._losses[candidate.embedding][rows]

    def score(self, candidate: Candidate, rows: np.ndarray, known_too: bool = False) -> CandidateScore | None:
        losses = self._losses[candidate.embedding][rows]
        fresh = losses[~np.isnan(losses)]
        if not len(fresh):
            return None
        loss, low, high = interval(fresh)
        return CandidateScore(
            embedding=candidate.embedding, loss=loss, low=low, high=high, rows=len(fresh),
            overlap=len(losses) - len(fresh), words=("a", "b"), accuracy=None, round=1, tuned=None,
        )  # fmt: skip


def faked(losses: Mapping[str, np.ndarray]) -> tuple[FakeEvaluator, Evaluator, list[Candidate]]:
    """The fake, the same as what the race takes, and a candidate for each."""
    fake = FakeEvaluator(losses)
    return fake, cast(Evaluator, fake), [Candidate(name, np.zeros(2, dtype=np.float32)) for name in losses]
