"""The best one-to-one mapping between a candidate's label words and the new task's labels."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

FOLDS = 8
_NEVER = 1e9


def word_pool(
    own: Sequence[str], candidates: Sequence[str], token_ids: Callable[[str], Sequence[int]]
) -> tuple[str, ...]:
    """The task's own words, then the candidate's that differ from them in tokens."""
    seen: dict[tuple[int, ...], str] = {}
    for word in (*own, *candidates):
        seen.setdefault(tuple(token_ids(word)), word)
    return tuple(seen.values())


def best_words(
    log_probabilities: np.ndarray, targets: np.ndarray, pool: Sequence[str], candidates: Sequence[str]
) -> tuple[str, ...]:
    """The word for each label that maximises the likelihood of the rows, no word used twice (Hungarian method).

    A label takes its own word or one of the candidate's, never the own word of another label that the candidate lacks.

    Args:
        log_probabilities: (n, W) of every word of the pool on every row.
        targets: (n, K) one-hot labels.
        pool: W words, W ≥ K; the first K are the task's own.
        candidates: the candidate's label words.

    Returns:
        K words. A label without rows keeps its own word where no other label took it.
    """
    from scipy.optimize import linear_sum_assignment

    cost = -(targets.T @ np.maximum(log_probabilities, -30.0))  # (K, W): the floor keeps one row from deciding alone
    own = np.arange(targets.shape[1])
    forbidden = np.tile([word not in candidates for word in pool], (len(own), 1))
    forbidden[own, own] = False
    cost[own, own] -= 1e-6 * (1.0 + np.abs(cost).max())  # ties go to the task's own words
    cost[forbidden] = _NEVER
    _, chosen = linear_sum_assignment(cost)
    return tuple(pool[index] for index in chosen)


def words_without(
    places: np.ndarray,
    log_probabilities: np.ndarray,
    targets: np.ndarray,
    pool: Sequence[str],
    candidates: Sequence[str],
) -> Iterator[tuple[np.ndarray, tuple[str, ...]]]:
    """Every row with the words that are best without it: which rows (n,) of bool, and their K words.

    Args:
        places: (n,) numbers of the rows from 0 on, which deal them among the folds.
        log_probabilities, targets, pool, candidates: as of `best_words`.
    """
    folds = places % min(FOLDS, len(places))
    for fold in np.unique(folds):
        held = folds == fold
        yield held, best_words(log_probabilities[~held], targets[~held], pool, candidates)
