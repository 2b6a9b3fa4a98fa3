"""The last round: finalists are trained together for a few steps, and judged on held-out rows.

The best start before training need not be the best after it. In addition to the finalists, a convex mixture of the best
few is trained, with weights learned in the same number of steps (as in SPoT, arXiv 2110.07904, and Poly, 2202.13914).
It is one more candidate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from onboard.model.batched import log_probabilities
from onboard.model.scoring import LabelTrie
from onboard.model.side_by_side import Losses, TrainingRun, train_side_by_side
from onboard.model.steps import Steps
from onboard.probe.candidates import MIXTURE, Candidate
from onboard.probe.evaluator import Evaluator, at_best_temperature
from onboard.probe.settings import FinalSettings


@dataclass(frozen=True)
class Finalist:
    """A candidate with its label words for the task's labels."""

    candidate: Candidate
    words: tuple[str, ...]


@dataclass(frozen=True)
class TriedFinalist:
    """The result of a finalist.

    Args:
        finalist: the finalist before training; the mixture's z uses weights learned on all rows.
        losses: (n,) of each row after a training without it; NaN if the candidate was trained on the row before.
        weights: of each of the mixed candidates by name; None except for the mixture.
    """

    finalist: Finalist
    losses: np.ndarray
    weights: dict[str, float] | None = None

    @property
    def name(self) -> str:
        """The name of the candidate."""
        return self.finalist.candidate.embedding


def try_finalists(
    evaluator: Evaluator,
    finalists: Sequence[Finalist],
    order: np.ndarray,
    settings: FinalSettings,
    known_too: bool = False,
) -> list[TriedFinalist]:
    """Return every finalist's loss on each row after a few steps on the other half, in order; the mixture comes last.

    Args:
        evaluator: with the new task's rows.
        finalists: best first; the mixture uses the first few with the same words as the first one.
        order: all row indices (n,), at least two, such that any prefix is a fair sample, and so is the rest.
        settings: of the round.
        known_too: judge on rows that a candidate was trained on, too.
    """
    first, second = np.array_split(order, 2)
    halves = [(first, second), (second, first)]  # trained on, judged on
    everything = np.arange(evaluator.rows)
    tries = [evaluator.engine.trie(finalist.words) for finalist in finalists]
    runs = [
        TrainingRun(finalist.candidate.z, trie, dealt(trained, settings))
        for trained, _ in halves
        for finalist, trie in zip(finalists, tries, strict=True)
    ]
    evaluator.trained += sum(len(rows) for run in runs for rows in run.batches)
    moved = train_side_by_side(
        evaluator.engine, runs, evaluator.ids, evaluator.targets, Steps(settings.learning_rate),
        lambda *_: evaluator.execution.before_batch(), evaluator.execution.trained_at_once,
    )  # fmt: skip
    tried = []
    for index, (finalist, trie) in enumerate(zip(finalists, tries, strict=True)):
        of_halves = [moved[half * len(finalists) + index].z for half in range(2)]
        fresh = known_too | ~evaluator.known(finalist.candidate, everything)
        tried.append(
            TriedFinalist(
                finalist,
                _held_out_losses(evaluator, of_halves, [judged_rows for _, judged_rows in halves], trie, fresh),
            )
        )
    mixed = [finalist for finalist in finalists if finalist.words == finalists[0].words][: settings.mixed]
    if len(mixed) > 1:
        tried.append(_mixture(evaluator, mixed, order, halves, settings, known_too))
    return [trial for trial in tried if known_too or evaluator.can_measure(trial.finalist.candidate, everything)]


def dealt(rows: np.ndarray, settings: FinalSettings) -> list[np.ndarray]:
    """Return the row indices of every step: `rows` repeated, in pieces."""
    size = min(settings.batch, len(rows))
    return [np.take(rows, range(step * size, (step + 1) * size), mode="wrap") for step in range(settings.steps)]


def _held_out_losses(
    evaluator: Evaluator,
    of_halves: Sequence[np.ndarray],
    held: Sequence[np.ndarray],
    trie: LabelTrie,
    fresh: np.ndarray,
) -> np.ndarray:
    """Return each row's loss (n,) with the z that was trained without it; NaN on rows that are not `fresh` (n,)."""
    scores = np.zeros_like(evaluator.targets)
    for z, rows in zip(of_halves, held, strict=True):
        ids = [evaluator.ids[row] for row in rows]
        evaluator.passes += len(rows)
        how = evaluator.execution.before_batch, evaluator.execution.scored_at_once
        scores[rows] = log_probabilities(evaluator.engine, ids, z, trie, *how)
    losses = np.full(evaluator.rows, np.nan)
    if fresh.any():
        losses[fresh] = at_best_temperature(scores[fresh], evaluator.targets[fresh])
    return losses


def _mixture(
    evaluator: Evaluator,
    mixed: Sequence[Finalist],
    order: np.ndarray,
    halves: Sequence[tuple[np.ndarray, np.ndarray]],
    settings: FinalSettings,
    known_too: bool,
) -> TriedFinalist:
    """Return the convex mixture: weights learned on each half to judge the other, and on all rows for its z."""
    parts, trie = np.stack([finalist.candidate.z for finalist in mixed]), evaluator.engine.trie(mixed[0].words)
    trained = [dealt(rows, settings) for rows in (*(rows for rows, _ in halves), order)]
    weights = _weights(evaluator, parts, trie, trained, 10.0 * settings.learning_rate)
    *of_halves, whole = ((shares @ parts).astype(np.float32) for shares in weights)
    rows_of_parts = np.unique(np.concatenate([finalist.candidate.trained_rows for finalist in mixed]))
    candidate = Candidate(MIXTURE, whole, mixed[0].candidate.words, trained_rows=rows_of_parts)
    fresh = known_too | ~evaluator.known(candidate, np.arange(evaluator.rows))
    losses = _held_out_losses(evaluator, of_halves, [judged_rows for _, judged_rows in halves], trie, fresh)
    named = {finalist.candidate.embedding: float(weight) for finalist, weight in zip(mixed, weights[-1], strict=True)}
    return TriedFinalist(Finalist(candidate, mixed[0].words), losses, named)


def _weights(
    evaluator: Evaluator,
    parts: np.ndarray,
    trie: LabelTrie,
    trained: Sequence[Sequence[np.ndarray]],
    learning_rate: float,
) -> np.ndarray:
    """Return weights (S, k) of the parts (k, t), learned separately on S sets of rows in parallel; each sums to one."""
    z = torch.from_numpy(parts).to(evaluator.engine.device)
    logits = torch.zeros(len(trained), len(parts), device=z.device, requires_grad=True)
    optimiser = torch.optim.Adam([logits], lr=learning_rate)
    tries = [trie] * len(trained)
    losing = Losses(evaluator.engine, tries, evaluator.ids, evaluator.targets, evaluator.execution.trained_at_once)
    for rows_of_step in zip(*trained, strict=True):
        evaluator.execution.before_batch()
        evaluator.trained += sum(map(len, rows_of_step))
        optimiser.zero_grad()
        mixtures = logits.softmax(-1) @ z  # (S, t)
        gradient, _ = losing.gradient(mixtures, rows_of_step)
        mixtures.backward(gradient)  # type: ignore[no-untyped-call]  # torch leaves it untyped
        optimiser.step()
    weights: np.ndarray = logits.detach().softmax(-1).cpu().numpy()
    return weights
