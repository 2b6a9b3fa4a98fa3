"""The plainest strategy: every candidate on every row."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from onboard.probe.candidates import Candidate, CandidateScore, ProbeResult
from onboard.probe.evaluator import Evaluator

Strategy = Callable[[Evaluator, Sequence[Candidate]], ProbeResult]


def probe_exhaustively(evaluator: Evaluator, candidates: Sequence[Candidate], asked: bool = False) -> ProbeResult:
    """Score all candidates on all rows that they do not know; the least loss wins.

    Args:
        evaluator: with the new task's rows.
        candidates: what to choose among.
        asked: the candidates were named by the submitter, so that rows they know do not disqualify them. Where every
            candidate knows the rows, all of them are measured on what they know, and the overlap is reported.

    Raises:
        ValueError: there is no candidate.
    """
    if not candidates:
        raise ValueError("a probe needs a candidate")
    rows = np.arange(evaluator.rows)
    evaluator.measure(candidates, rows, known_too=asked)
    fresh = [(evaluator.score(candidate, rows, known_too=asked), candidate) for candidate in candidates]
    scored = [(score, candidate) for score, candidate in fresh if score is not None]
    if not scored:
        return probe_exhaustively(evaluator, candidates, asked=True)
    scored.sort(key=lambda pair: (pair[0].loss, pair[0].embedding))
    best, winner = scored[0]
    scores: tuple[CandidateScore, ...] = tuple(score for score, _ in scored)
    overlap = max(int(evaluator.known(candidate, rows).sum()) for candidate in candidates)
    return ProbeResult(best, winner.z, scores, overlap)
