"""Choose the start of a new task: a race, a final round with some training, and a comparison with baselines."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from onboard.contract.report import CandidateScore
from onboard.probe.candidates import NOTHING_LEARNED, Candidate, ProbeResult
from onboard.probe.evaluator import Evaluator, interval
from onboard.probe.finals import Finalist, TriedFinalist, try_finalists
from onboard.probe.racing import Raced, mean_of, race, ranking
from onboard.probe.settings import FEWEST_ROWS, ProbeSettings
from onboard.statistics.student import paired

TIE = 1.96  # standard errors of the paired difference within which two candidates are tied
NOISE = 1.0  # standard errors by which the best finalist must beat a start without knowledge


def choose(
    evaluator: Evaluator, candidates: Sequence[Candidate], order: np.ndarray, settings: ProbeSettings | None = None
) -> ProbeResult:
    """Choose the start of a new task.

    If every candidate was trained on nearly all rows, all are measured on known rows, and the overlap is reported.

    Args:
        evaluator: with the new task's rows.
        order: all row indices (n,), such that any prefix is a fair sample.
        settings: of the rounds.

    Raises:
        ValueError: there is no candidate.
    """
    if not candidates:
        raise ValueError("a probe needs a candidate")
    settings = settings or ProbeSettings()
    known_too = not any(evaluator.can_measure(candidate, order) for candidate in candidates)
    of_race = replace(settings.race, first_rows=len(order)) if settings.exhaustive else settings.race
    raced = race(evaluator, candidates, order, of_race, NOTHING_LEARNED, known_too)
    tuned = bool(settings.finals.steps) and len(order) >= FEWEST_ROWS
    tried = _tuned(evaluator, raced, order, settings, known_too) if tuned else _as_raced(raced)
    best, reason = _best(tried, NOISE if tuned else _luck(len(raced.scores)))
    scores = {score.embedding: score for score in raced.scores}
    scores |= {trial.name: _score(trial, scores) for trial in tried if tuned}
    return ProbeResult(
        chosen=scores[best.name],
        z=best.finalist.candidate.z,
        scores=tuple(sorted(scores.values(), key=lambda score: (score.embedding != best.name, *_rank(score)))),
        overlap=max(int(evaluator.known(candidate, order).sum()) for candidate in candidates),
        ties=_ties(best, tried, raced),
        alarm=reason,
        weights=best.weights,
        known_too=known_too,
    )


def measure_named(evaluator: Evaluator, named: Candidate) -> ProbeResult:
    """Return the result for a given candidate without a choice, on all rows, including known ones."""
    everything = np.arange(evaluator.rows)
    score = evaluator.score(named, everything, known_too=True)
    assert score is not None
    return ProbeResult(score, named.z, (score,), score.overlap, known_too=score.overlap > 0)


def _luck(candidates: int) -> float:
    """Return the standard errors by which the best of k leads by chance: about √(2 ln k), as for k normal numbers."""
    return max(NOISE, math.sqrt(2 * math.log(candidates)))


def _tuned(
    evaluator: Evaluator, raced: Raced, order: np.ndarray, settings: ProbeSettings, known_too: bool
) -> list[TriedFinalist]:
    """Return the best few, and the better baseline, after some training."""
    standing = _finalists(raced)
    plain = next((finalist for finalist in standing if finalist.candidate.embedding in NOTHING_LEARNED), None)
    few = standing[: settings.finalists]
    if plain is not None and plain not in few:
        few.append(plain)
    return try_finalists(evaluator, few, order, settings.finals, known_too)


def _as_raced(raced: Raced) -> list[TriedFinalist]:
    return [TriedFinalist(each, losses) for each, losses in zip(_finalists(raced), raced.losses, strict=True)]


def _finalists(raced: Raced) -> list[Finalist]:
    words = {score.embedding: score.words for score in raced.scores}
    return [Finalist(each, words[each.embedding]) for each in raced.standing]


def _best(tried: Sequence[TriedFinalist], noise: float) -> tuple[TriedFinalist, str | None]:
    """Return the one with the lowest loss, and None as a reason.

    If a baseline is as good, within this many standard errors, return the baseline and the reason.
    """
    places = ranking([trial.finalist.candidate for trial in tried], np.stack([trial.losses for trial in tried]))
    ranked = [tried[place] for place in places]
    best = ranked[0]
    plain = next((trial for trial in ranked if trial.name in NOTHING_LEARNED), None)
    if plain is None:
        return best, None
    if best is plain:
        return plain, f"No earlier embedding is a better start than {plain.name}."
    gain, error = paired(plain.losses, best.losses)
    if gain > noise * error:
        return best, None
    measured = (
        f"{gain:.3f} nats a row, the noise is {noise * error:.3f}" if math.isfinite(error) else "too few rows to tell"
    )
    return plain, f"No candidate is a better start than {plain.name} by more than noise ({best.name}: {measured})."


def _ties(best: TriedFinalist, tried: Sequence[TriedFinalist], raced: Raced) -> tuple[str, ...]:
    """Return those that the rows cannot distinguish from the best, by the last comparison of each."""
    last = {trial.name: trial.losses for trial in tried}
    before = {candidate.embedding: losses for candidate, losses in zip(raced.standing, raced.losses, strict=True)}
    alike = [name for name, losses in last.items() if name != best.name and _alike(losses, best.losses)]
    not_tuned = [name for name in before if name not in last and best.name in before]
    return (*alike, *(name for name in not_tuned if _alike(before[name], before[best.name])))


def _alike(losses: np.ndarray, others: np.ndarray) -> bool:
    difference, error = paired(losses, others)
    return abs(difference) <= TIE * error


def _score(tried: TriedFinalist, scores: Mapping[str, CandidateScore]) -> CandidateScore:
    """Return the score with the loss after training. The mixture, which is made by training, has no other loss."""
    losses = tried.losses[~np.isnan(tried.losses)]
    if tried.name in scores:
        return scores[tried.name].model_copy(update={"tuned": mean_of(losses)})
    loss, low, high = interval(losses)
    last = max(score.round for score in scores.values())
    overlap = len(tried.losses) - len(losses)
    return CandidateScore(
        embedding=tried.name, loss=loss, low=low, high=high, rows=len(losses), overlap=overlap,
        words=tried.finalist.words, accuracy=None, round=last, tuned=loss,
    )  # fmt: skip


def _rank(score: CandidateScore) -> tuple[int, float, float, str]:
    """Return a sort key: later rounds first; in the last round by the loss after training."""
    return -score.round, math.inf if score.tuned is None else score.tuned, score.loss, score.embedding
