"""Successive halving: few rows for many candidates, all rows for the few that could still be the best.

After each round the rows double. A candidate leaves when its paired losses are worse than the leader's by more than
noise allows, and never more than half stay, but the finalists always do (Jamieson & Talwalkar 2016, arXiv 1502.07943;
the bounds are on paired differences, because rows differ far more than candidates do).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from onboard.contract.report import CandidateScore
from onboard.probe.candidates import Candidate
from onboard.probe.evaluator import MINIMUM_ROWS, Evaluator
from onboard.probe.settings import RaceSettings
from onboard.statistics.student import half_interval, paired

_BACKFITS: Final = 50  # turns between rows and candidates; ten are enough unless few rows are shared


@dataclass(frozen=True)
class Raced:
    """How the race ended.

    Args:
        standing: those that were measured on all rows, best first.
        scores: of every candidate that was measured, best first: later rounds before earlier ones, then by loss.
        losses: (C, n) of those that stand, on all rows; NaN on rows that one has been trained on.
    """

    standing: tuple[Candidate, ...]
    scores: tuple[CandidateScore, ...]
    losses: np.ndarray


def race(
    evaluator: Evaluator,
    candidates: Sequence[Candidate],
    order: np.ndarray,
    settings: RaceSettings | None = None,
    spared: Collection[str] = (),
    known_too: bool = False,
) -> Raced:
    """Find the best candidates on the evaluator's rows.

    Args:
        evaluator: with the new task's rows.
        candidates: what to choose among; one that has been trained on too many rows to be measured does not take part.
        order: all row indices (n,); any beginning of it should be a fair sample.
        settings: of the race.
        spared: names of candidates that stay to the end, for comparison.
        known_too: measure on rows that a candidate has been trained on as well.

    Raises:
        ValueError: no candidate can be measured.
    """
    settings = settings or RaceSettings()
    standing = [candidate for candidate in candidates if known_too or evaluator.can_measure(candidate, order)]
    if not standing:
        raise ValueError("a race needs a candidate that can be measured")
    standing, losses, ended = _halved(evaluator, standing, order, settings, spared, known_too)
    ranked = ranking(standing, losses)
    scores = [
        score.model_copy(update={"round": last_round})
        for candidate, last_round, seen in ended
        if (score := evaluator.score(candidate, order[:seen], known_too)) is not None
    ]
    scores.sort(key=lambda score: (-score.round, score.loss, score.embedding))
    return Raced(tuple(standing[index] for index in ranked), tuple(scores), losses[ranked])


def _halved(
    evaluator: Evaluator,
    standing: list[Candidate],
    order: np.ndarray,
    settings: RaceSettings,
    spared: Collection[str],
    known_too: bool,
) -> tuple[list[Candidate], np.ndarray, list[tuple[Candidate, int, int]]]:
    """Round after round, until all rows are measured.

    Returns:
        Those that stand, their losses (C, n), and every candidate with its last round and the rows of that.
    """
    ended: list[tuple[Candidate, int, int]] = []
    number, count = 1, min(settings.first_rows, len(order))
    while True:
        rows = order[:count]
        evaluator.measure(standing, rows, known_too)
        losses = np.stack([evaluator.losses(candidate, rows, known_too) for candidate in standing])  # (C, rows)
        going_on = range(len(standing)) if count == len(order) else _kept(standing, losses, settings, spared)
        ended += [(candidate, number, count) for index, candidate in enumerate(standing) if index not in going_on]
        standing = [standing[index] for index in going_on]
        if count == len(order):
            break
        number, count = number + 1, min(2 * count, len(order))
    ended += [(candidate, number, count) for candidate in standing]
    return standing, losses, ended


def ranking(standing: Sequence[Candidate], losses: np.ndarray, *, surely: bool = True) -> list[int]:
    """Indices of candidates, best first, by what they would lose on average if all were measured on all rows.

    Rows differ in difficulty far more than candidates do, and not all candidates are measured on the same ones: losses
    (C, n) are taken for the sum of what is the candidate's and what is the row's, fitted by least squares.

    Args:
        standing: C candidates.
        losses: (C, n), NaN where one knows a row.
        surely: what a few rows say by chance is no merit: a candidate counts with the upper end of its 95% interval
            (Student's t, with the correction for a finite population: measured on every row it has none).
    """
    there = ~np.isnan(losses)
    own = losses - _apart(np.where(there, losses, 0.0), there)  # (C, n)
    means = [mean_of(row) + (_unsure(row) if surely else 0.0) for row in own]
    return sorted(range(len(standing)), key=lambda index: (round(means[index], 6), standing[index].embedding))


def _apart(losses: np.ndarray, there: np.ndarray) -> np.ndarray:
    """What is each row's (n,), whoever was measured on it, of losses (C, n); by turns, as backfitting does."""
    of_rows: np.ndarray = losses.sum(0) / np.maximum(there.sum(0), 1)
    if there.all():
        return of_rows
    for _ in range(_BACKFITS):
        of_candidates = np.where(there, losses - of_rows, 0.0).sum(1) / np.maximum(there.sum(1), 1)  # (C,)
        of_rows = np.where(there, losses - of_candidates[:, None], 0.0).sum(0) / np.maximum(there.sum(0), 1)
    return of_rows


def _unsure(losses: np.ndarray) -> float:
    """Half the 95% interval of what the mean over all rows (n,) would be, by those that are there."""
    known = losses[~np.isnan(losses)]
    if len(known) == len(losses):
        return 0.0
    if len(known) < 2:
        return float("inf")
    return half_interval(known) * float(np.sqrt(1.0 - len(known) / len(losses)))


def mean_of(losses: np.ndarray) -> float:
    """Mean over the rows that it has; infinite where it has none."""
    there = losses[~np.isnan(losses)]
    return float(there.mean()) if len(there) else float("inf")


def _kept(
    standing: Sequence[Candidate], losses: np.ndarray, settings: RaceSettings, spared: Collection[str]
) -> list[int]:
    """Indices of those that go on, in their order."""
    fresh = (~np.isnan(losses)).sum(1)
    judged = [index for index in range(len(standing)) if fresh[index] >= min(MINIMUM_ROWS, losses.shape[1])]
    unjudged = set(range(len(standing))) - set(judged)  # they know most rows of this round, not of the next
    if not judged:
        return sorted(unjudged)
    ranked = [judged[place] for place in ranking([standing[index] for index in judged], losses[judged], surely=False)]
    leader, most = ranked[0], max(settings.finalists, (len(ranked) + 1) // 2)
    going_on = {
        index
        for rank, index in enumerate(ranked[:most])
        if rank < settings.finalists or not _clearly_worse(losses[index], losses[leader], settings.margin)
    }
    return sorted(
        going_on | unjudged | {index for index, candidate in enumerate(standing) if candidate.embedding in spared}
    )


def _clearly_worse(losses: np.ndarray, leader: np.ndarray, margin: float) -> bool:
    mean, error = paired(losses, leader)
    return mean > margin * error
