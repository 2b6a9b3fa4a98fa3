"""Loss of candidates on labeled rows, without training."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import torch

from onboard.contract.report import CandidateScore
from onboard.data.hashes import in_sorted
from onboard.model.batched import mixed_edge_logits
from onboard.model.engine import Engine
from onboard.model.execution import UNWATCHED, Execution
from onboard.model.scoring import LabelTrie, log_probabilities_among
from onboard.probe.candidates import NOTHING, Candidate
from onboard.probe.mapping import best_words, word_pool, words_without
from onboard.statistics.student import student_interval

_TEMPERATURES = np.array([1.0, 1.25, 1.6, 2.0, 2.5, 3.2, 4.0, 5.0, 6.3, 8.0, 10.0, 16.0])
MINIMUM_ROWS = 4
GENERATED_BYTES: Final = 256 * 2**20  # of adapters at once; those of T5-base take 7.6 MB per candidate


@dataclass
class _Seen:
    """The computed results of one candidate: logits (n, E) of its pool's trie, and the rows that are `there` (n)."""

    pool: tuple[str, ...]
    trie: LabelTrie
    logits: np.ndarray
    there: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        self.there = np.zeros(len(self.logits), dtype=np.bool_)


@dataclass(frozen=True)
class ProbedTask:
    """The new task in the form that the probe uses.

    Args:
        ids: token ids of each row (n).
        targets: distribution over labels or buckets of each row (n, K).
        row_hashes: 64-bit hash of each row (n), to leave out rows that a candidate was trained on.
        mapped: whether label words may be mapped (classification) or are fixed (the buckets of a regression).
        known_to_all: sorted hashes of rows that trained the head, and so affect every candidate.
    """

    ids: Sequence[Sequence[int]]
    targets: np.ndarray
    words: Sequence[str]
    row_hashes: np.ndarray
    mapped: bool
    known_to_all: np.ndarray = field(default_factory=lambda: NOTHING)


class Evaluator:
    """Measures candidates on the new task's rows, many candidates and rows in one batch, and caches the results.

    Args:
        engine: with the head that the task will train with.
        execution: called before every batch.
        generated_bytes: maximum memory of the candidates' adapters.

    Attributes:
        passes: rows that went through the model for a candidate, without gradients.
        trained: rows that candidates were trained on, counted repeatedly.
    """

    def __init__(
        self,
        engine: Engine,
        task: ProbedTask,
        execution: Execution = UNWATCHED,
        generated_bytes: int = GENERATED_BYTES,
    ) -> None:
        self.engine, self.execution = engine, execution
        self.ids, self.targets, self.words = list(task.ids), task.targets, tuple(task.words)
        self._hashes, self._mapped = task.row_hashes, task.mapped
        self._known_to_all = in_sorted(task.row_hashes, task.known_to_all)
        self._together = max(1, generated_bytes // _bytes_of_adapters(engine))
        self._seen: dict[str, _Seen] = {}
        self._tries: dict[tuple[str, ...], LabelTrie] = {}
        self.passes = self.trained = 0

    @property
    def rows(self) -> int:
        """The number of labeled rows."""
        return len(self.ids)

    def known(self, candidate: Candidate, rows: np.ndarray) -> np.ndarray:
        """Return which of `rows` (n indices) the candidate, or the head, was trained on: (n,) of bool."""
        is_known: np.ndarray = in_sorted(self._hashes[rows], candidate.trained_rows) | self._known_to_all[rows]
        return is_known

    def can_measure(self, candidate: Candidate, rows: np.ndarray) -> bool:
        """Return whether enough of `rows` (indices) are left that the candidate was not trained on."""
        return int((~self.known(candidate, rows)).sum()) >= min(MINIMUM_ROWS, len(rows))

    def measure(self, candidates: Sequence[Candidate], rows: np.ndarray, known_too: bool = False) -> None:
        """Compute the data for `score` and `losses`, for all candidates together.

        Args:
            candidates: to measure; their names are unique.
            rows: indices.
            known_too: include rows that a candidate was trained on.
        """
        for start in range(0, len(candidates), self._together):
            self._measure([*self._missing(candidates[start : start + self._together], rows, known_too)])

    def score(self, candidate: Candidate, rows: np.ndarray, known_too: bool = False) -> CandidateScore | None:
        """Return the candidate's loss on those of `rows` that it was not trained on; None if too few remain.

        Args:
            candidate: to measure.
            rows: indices.
            known_too: include rows that it was trained on.
        """
        if not (known_too or self.can_measure(candidate, rows)):
            return None
        is_known = self.known(candidate, rows)
        fresh = rows if known_too else rows[~is_known]
        words, scores = self.scores(candidate, fresh)  # (n, K)
        targets = self.targets[fresh]
        # rounded, because batching causes differences below a millionth of a nat, and equal candidates must be equal
        loss, low, high = (round(figure, 6) for figure in interval(at_best_temperature(scores, targets)))
        accuracy = float((scores.argmax(1) == targets.argmax(1)).mean()) if self._mapped else None
        overlap = int(is_known.sum())
        return CandidateScore(
            embedding=candidate.embedding, loss=loss, low=low, high=high, rows=len(fresh), overlap=overlap,
            words=words, accuracy=accuracy, round=1, tuned=None,
        )  # fmt: skip

    def losses(self, candidate: Candidate, rows: np.ndarray, known_too: bool = False) -> np.ndarray:
        """Return its loss on each of `rows` (n,) at its best temperature; NaN on rows that it was trained on."""
        fresh = np.full(len(rows), True) if known_too else ~self.known(candidate, rows)
        losses = np.full(len(rows), np.nan)
        if fresh.any():
            _, scores = self.scores(candidate, rows[fresh])
            losses[fresh] = at_best_temperature(scores, self.targets[rows[fresh]])
        return losses

    def scores(self, candidate: Candidate, rows: np.ndarray) -> tuple[tuple[str, ...], np.ndarray]:
        """Return a label word for each label, chosen by these rows, and log-probabilities (n, K) of each row.

        If words are mapped, each row is scored with the words that the other rows choose. The best of many mappings
        would always look good on the few rows that selected it.
        """
        self.measure([candidate], rows, known_too=True)
        results = self._seen[candidate.embedding]
        words = results.pool[: len(self.words)]
        with_task_words = self._among(results, rows, words)
        if not (self._mapped and candidate.words) or candidate.ordered:
            return words, with_task_words
        among, targets = self._among(results, rows, results.pool), self.targets[rows]
        mapped = best_words(among, targets, results.pool, candidate.words)
        if mapped == words:
            return words, with_task_words
        renamed = np.empty_like(with_task_words)
        for fold_rows, fold_words in words_without(
            np.argsort(np.argsort(rows)), among, targets, results.pool, candidate.words
        ):
            renamed[fold_rows] = self._among(results, rows[fold_rows], fold_words)
        better = at_best_temperature(renamed, targets).mean() < at_best_temperature(with_task_words, targets).mean()
        return (mapped, renamed) if better else (words, with_task_words)

    def _pool(self, candidate: Candidate) -> tuple[str, ...]:
        """Return possible words for the labels; the first K are the task's (a scale uses another scale's)."""
        if self._mapped and candidate.words and not candidate.ordered:
            return word_pool(self.words, candidate.words, self.engine.encoder.label_ids)
        if not self._mapped and candidate.ordered and len(candidate.words) == len(self.words):
            return candidate.words
        return self.words

    def _among(self, seen: _Seen, rows: np.ndarray, words: Sequence[str]) -> np.ndarray:
        logits = torch.from_numpy(seen.logits[rows])
        scores: np.ndarray = log_probabilities_among(logits, seen.trie, [seen.pool.index(w) for w in words]).numpy()
        return scores

    def _missing(
        self, candidates: Sequence[Candidate], rows: np.ndarray, known_too: bool
    ) -> Iterator[tuple[Candidate, np.ndarray]]:
        """Yield the rows of each candidate that are not computed yet."""
        for candidate in candidates:
            results = self._seen.get(candidate.embedding)
            if results is None:
                pool = self._pool(candidate)
                if pool not in self._tries:
                    self._tries[pool] = self.engine.trie(pool)
                trie = self._tries[pool]
                empty = np.full((self.rows, len(trie.edge_token)), np.nan, dtype=np.float32)
                results = self._seen[candidate.embedding] = _Seen(pool, trie, empty)
            missing = rows if known_too else rows[~self.known(candidate, rows)]
            missing = missing[~results.there[missing]]
            if len(missing):
                yield candidate, missing

    @torch.inference_mode()
    def _measure(self, missing: Sequence[tuple[Candidate, np.ndarray]]) -> None:
        if not missing:
            return
        z = torch.from_numpy(np.stack([candidate.z for candidate, _ in missing]))
        generated = self.engine.hypernetwork(z.to(self.engine.device))
        results = [self._seen[candidate.embedding] for candidate, _ in missing]
        rows = np.concatenate([absent for _, absent in missing])
        of = np.repeat(np.arange(len(missing)), [len(absent) for _, absent in missing])
        logits = mixed_edge_logits(
            self.engine, [self.ids[row] for row in rows], generated, [result.trie for result in results], of,
            self.execution.before_batch, self.execution.scored_at_once,
        )  # fmt: skip
        self.passes += len(rows)
        for index, of_candidate in enumerate(results):
            of_index = rows[of == index]
            of_candidate.logits[of_index] = logits[of == index, : of_candidate.logits.shape[1]]
            of_candidate.there[of_index] = True


def _bytes_of_adapters(engine: Engine) -> int:
    """Return the memory of one candidate's adapters."""
    size = engine.hypernetwork.sizes["task_embedding_size"]
    with torch.inference_mode():
        generated = engine.hypernetwork(torch.zeros(1, size, device=engine.device))
    return sum(tensor.nbytes for stack in generated for tensor in stack)


def interval(losses: np.ndarray) -> tuple[float, float, float]:
    """Return mean and 95% interval (Student's t) of losses (n,); for one row both ends are the mean."""
    mean = float(losses.mean())
    return (mean, *student_interval(losses)) if len(losses) > 1 else (mean, mean, mean)


def at_best_temperature(log_probabilities: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """Return losses (n,) at the temperature ≥ 1 with the lowest mean loss.

    Without it, an over-confident but informative candidate could lose to an uninformative one.

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
