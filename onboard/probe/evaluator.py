"""Loss of candidates on labelled rows, without training anything."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from onboard.model.batched import log_probabilities
from onboard.model.engine import Engine
from onboard.model.memory import RowsAtOnce
from onboard.probe.candidates import Candidate, CandidateScore
from onboard.probe.mapping import best_words, word_pool

_CLEARLY = 2.0
_TEMPERATURES = np.array([1.0, 1.25, 1.6, 2.0, 2.5, 3.2, 4.0, 5.0, 6.3, 8.0, 10.0, 16.0])
MINIMUM_ROWS = 4


class Evaluator:
    """Measures candidates on the new task's rows.

    Args:
        engine: with the head that the task will train with.
        ids: token ids of each row (n).
        targets: distribution over labels or buckets of each row (n, K).
        words: the task's own K label words.
        row_hashes: 64-bit hash of each row (n), to leave out rows that a candidate knows.
        mapped: whether label words may be mapped (classification) or are fixed (the buckets of a regression).
        checkpoint: called before every batch; may raise to stop.
        at_once: how many rows fit into the memory.
    """

    def __init__(
        self,
        engine: Engine,
        ids: Sequence[Sequence[int]],
        targets: np.ndarray,
        words: Sequence[str],
        row_hashes: np.ndarray,
        mapped: bool,
        checkpoint: Callable[[], None] = lambda: None,
        at_once: RowsAtOnce | None = None,
    ) -> None:
        self._engine, self._ids, self._targets, self._words = engine, list(ids), targets, tuple(words)
        self._hashes, self._mapped, self._checkpoint, self._at_once = row_hashes, mapped, checkpoint, at_once

    @property
    def rows(self) -> int:
        """How many labelled rows there are."""
        return len(self._ids)

    def score(self, candidate: Candidate, rows: np.ndarray, known_too: bool = False) -> CandidateScore | None:
        """The candidate's loss on those of `rows` (indices) that it has not been trained on; None when too few remain.

        Args:
            candidate: to be measured.
            rows: indices.
            known_too: measure on rows that it has been trained on as well.
        """
        known = self.known(candidate, rows)
        fresh = rows if known_too else rows[~known]
        if len(fresh) < min(MINIMUM_ROWS, len(rows)):
            return None
        targets = self._targets[fresh]
        words, scores = self._mapped_scores(candidate, fresh, targets)  # (n, K)
        losses = at_best_temperature(scores, targets)
        spread = 1.96 * float(losses.std(ddof=1)) / len(losses) ** 0.5 if len(losses) > 1 else float("inf")
        loss = float(losses.mean())
        accuracy = float((scores.argmax(1) == targets.argmax(1)).mean()) if self._mapped else None
        overlap = int(known.sum())
        return CandidateScore(
            candidate.embedding, loss, loss - spread, loss + spread, len(fresh), overlap, words, accuracy
        )

    def known(self, candidate: Candidate, rows: np.ndarray) -> np.ndarray:
        """Which of `rows` (n indices) the candidate has been trained on: (n,) of bool."""
        return np.isin(self._hashes[rows], candidate.trained_rows)

    def _mapped_scores(
        self, candidate: Candidate, rows: np.ndarray, targets: np.ndarray
    ) -> tuple[tuple[str, ...], np.ndarray]:
        """Label word for each label, and its log-probability on each row (n, K)."""
        if not self._mapped or candidate.ordered or not candidate.words:
            words = self._words
            if not self._mapped and candidate.ordered and len(candidate.words) == len(words):
                words = candidate.words  # a scale takes another scale's words in their order
            return words, self._log_probabilities(candidate, rows, words)
        pool = word_pool(self._words, candidate.words, self._engine.encoder.label_ids)
        scores = self._log_probabilities(candidate, rows, pool)  # (n, W)
        words = best_words(scores, targets, pool, candidate.words)
        own = self._words, self._scores_of(self._words, pool, scores, candidate, rows)
        if words == self._words:
            return own
        mapped = words, self._scores_of(words, pool, scores, candidate, rows)
        return mapped if clearly_better(mapped[1], own[1], targets) else own

    def _scores_of(
        self,
        words: Sequence[str],
        pool: Sequence[str],
        scores: np.ndarray,
        candidate: Candidate,
        rows: np.ndarray,
    ) -> np.ndarray:
        """Log-probabilities of the words alone (n, K): columns of the pool's where these are all of it."""
        if len(words) == len(pool):
            return scores[:, [pool.index(word) for word in words]]
        return self._log_probabilities(candidate, rows, words)

    def _log_probabilities(self, candidate: Candidate, rows: np.ndarray, words: Sequence[str]) -> np.ndarray:
        ids = [self._ids[row] for row in rows]
        trie = self._engine.trie(words)
        return log_probabilities(self._engine, ids, candidate.z, trie, self._checkpoint, self._at_once)


def clearly_better(mapped: np.ndarray, own: np.ndarray, targets: np.ndarray) -> bool:
    """Whether mapped words beat the task's own by two standard errors of the paired losses: on a few rows the best of
    many mappings always looks good.

    Args:
        mapped: (n, K) log-probabilities under the mapped words.
        own: (n, K) under the task's own words.
        targets: (n, K) distributions.
    """
    gain = at_best_temperature(own, targets) - at_best_temperature(mapped, targets)
    error = float(gain.std(ddof=1)) / len(gain) ** 0.5 if len(gain) > 1 else float("inf")
    return float(gain.mean()) > _CLEARLY * error


def at_best_temperature(log_probabilities: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """Losses (n,) at the temperature ≥ 1 of least mean loss: an over-confident candidate that knows something must not
    lose to one that knows nothing.

    Args:
        log_probabilities: (n, K).
        targets: (n, K) distributions.
    """
    best: np.ndarray | None = None
    for temperature in _TEMPERATURES:
        scaled = log_probabilities / temperature
        normaliser = np.logaddexp.reduce(scaled, axis=1, keepdims=True)
        losses = -(targets * (scaled - normaliser)).sum(1)
        if best is None or losses.mean() < best.mean():
            best = losses
    assert best is not None
    return best
