"""The best one-to-one mapping between a candidate's label words and the new task's labels."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

FOLDS = 8
_NEVER = 1e9


def word_pool(
    own: Sequence[str], candidates: Sequence[str], token_ids: Callable[[str], Sequence[int]]
) -> tuple[str, ...]:
    """Return the task's words, then the candidate's that have different tokens."""
    by_tokens: dict[tuple[int, ...], str] = {}
    for word in (*own, *candidates):
        by_tokens.setdefault(tuple(token_ids(word)), word)
    return tuple(by_tokens.values())


def best_words(
    log_probabilities: np.ndarray, targets: np.ndarray, pool: Sequence[str], candidates: Sequence[str]
) -> tuple[str, ...]:
    """Return the word for each label that maximizes the likelihood of the rows, each word used once (Hungarian method).

    A label gets its own word or one of the candidate's, but not the word of another label that the candidate lacks.

    Args:
        log_probabilities: (n, W) of every word of the pool on every row.
        targets: (n, K) one-hot labels.
        pool: W words, W ≥ K; the first K are the task's.
        candidates: the candidate's label words.

    Returns:
        K words. A label without rows keeps its word unless another label takes it.
    """
    from scipy.optimize import linear_sum_assignment

    cost = -(targets.T @ np.maximum(log_probabilities, -30.0))  # (K, W): the floor prevents a single row from deciding
    diagonal = np.arange(targets.shape[1])
    forbidden = np.tile([word not in candidates for word in pool], (len(diagonal), 1))
    forbidden[diagonal, diagonal] = False
    cost[diagonal, diagonal] -= 1e-6 * (1.0 + np.abs(cost).max())  # ties go to the task's words
    cost[forbidden] = _NEVER
    _, assigned = linear_sum_assignment(cost)
    return tuple(pool[index] for index in assigned)


def words_without(
    places: np.ndarray,
    log_probabilities: np.ndarray,
    targets: np.ndarray,
    pool: Sequence[str],
    candidates: Sequence[str],
) -> Iterator[tuple[np.ndarray, tuple[str, ...]]]:
    """Yield, for each fold, the mask of its rows (n,) and the K words that are best without them.

    Args:
        places: (n,) numbers of the rows from 0, which assign them to folds.
        log_probabilities, targets, pool, candidates: as in `best_words`.
    """
    folds = places % min(FOLDS, len(places))
    for fold in np.unique(folds):
        in_fold = folds == fold
        yield in_fold, best_words(log_probabilities[~in_fold], targets[~in_fold], pool, candidates)
