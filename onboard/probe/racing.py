"""Successive halving: few rows for many candidates, all rows for the few that could still be the best.

After each round the number of rows doubles. A candidate leaves when its paired losses are significantly worse than the
leader's, and at most half stay, except the finalists (Jamieson & Talwalkar 2016, arXiv 1502.07943; the bounds are on
paired differences, because rows differ much more than candidates do).
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

_BACKFITS: Final = 50  # iterations between rows and candidates; ten suffice unless few rows are shared


@dataclass(frozen=True)
class Raced:
    """The result of the race.

    Args:
        standing: candidates that were measured on all rows, best first.
        scores: of every measured candidate, best first: later rounds before earlier ones, then by loss.
        losses: (C, n) of the standing candidates on all rows; NaN on rows that one was trained on.
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
        candidates: the candidates; those trained on too many rows to be measured are excluded.
        order: all row indices (n,), such that any prefix is a fair sample.
        spared: names of candidates that stay to the end, for comparison.
        known_too: include rows that a candidate was trained on.

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
        for candidate, last_round, rows_of_last_round in ended
        if (score := evaluator.score(candidate, order[:rows_of_last_round], known_too)) is not None
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
    """Run rounds until all rows are measured.

    Returns:
        The remaining candidates, their losses (C, n), and every candidate with its last round and number of rows.
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
    """Return indices of candidates, best first, by their expected mean loss on all rows.

    Rows differ much more than candidates do, and candidates are measured on different rows. So losses (C, n) are
    modeled as the sum of a candidate effect and a row effect, fitted by least squares.

    Args:
        standing: C candidates.
        losses: (C, n), NaN if a candidate was trained on a row.
        surely: rank by the upper end of the 95% interval, so that luck on few rows does not count (Student's t, with
            the correction for a finite population: measured on every row, its width is 0).
    """
    measured = ~np.isnan(losses)
    effects = losses - _apart(np.where(measured, losses, 0.0), measured)  # (C, n)
    means = [mean_of(row) + (_unsure(row) if surely else 0.0) for row in effects]
    return sorted(range(len(standing)), key=lambda index: (round(means[index], 6), standing[index].embedding))


def _apart(losses: np.ndarray, there: np.ndarray) -> np.ndarray:
    """Return the row effects (n,) of losses (C, n), by alternating fits (backfitting)."""
    of_rows: np.ndarray = losses.sum(0) / np.maximum(there.sum(0), 1)
    if there.all():
        return of_rows
    for _ in range(_BACKFITS):
        of_candidates = np.where(there, losses - of_rows, 0.0).sum(1) / np.maximum(there.sum(1), 1)  # (C,)
        of_rows = np.where(there, losses - of_candidates[:, None], 0.0).sum(0) / np.maximum(there.sum(0), 1)
    return of_rows


def _unsure(losses: np.ndarray) -> float:
    """Return half the 95% interval of the mean over all rows (n,), estimated from the measured ones."""
    measured = losses[~np.isnan(losses)]
    if len(measured) == len(losses):
        return 0.0
    if len(measured) < 2:
        return float("inf")
    return half_interval(measured) * float(np.sqrt(1.0 - len(measured) / len(losses)))


def mean_of(losses: np.ndarray) -> float:
    """Return the mean over measured rows; infinite if there are none."""
    measured = losses[~np.isnan(losses)]
    return float(measured.mean()) if len(measured) else float("inf")


def _kept(
    standing: Sequence[Candidate], losses: np.ndarray, settings: RaceSettings, spared: Collection[str]
) -> list[int]:
    """Return the indices of candidates for the next round, in order."""
    fresh = (~np.isnan(losses)).sum(1)
    judged = [index for index in range(len(standing)) if fresh[index] >= min(MINIMUM_ROWS, losses.shape[1])]
    # they were trained on most rows of this round, but not of the next
    unjudged = set(range(len(standing))) - set(judged)
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
