"""Constants that are added to the labels' log-probabilities, for `bench.recipes`: the service has none.

They are fitted on predictions of rows that were not trained on, once a task (after arXiv 2309.17249). Why the service
has none: docs/decisions/0011-no-constants-per-label-no-shrinking.md.
"""

from __future__ import annotations

from typing import Final

import numpy as np

_ITERATIONS: Final = 50
_CLOSE_ENOUGH: Final = 1e-7


def calibrated(log_probabilities: np.ndarray, offsets: np.ndarray | None) -> np.ndarray:
    """Log-probabilities (…, K) with the constants (K,) added, normalised again; as they are where there are none."""
    if offsets is None:
        return log_probabilities
    shifted = log_probabilities + offsets.astype(log_probabilities.dtype)
    normalised: np.ndarray = shifted - np.logaddexp.reduce(shifted, axis=-1, keepdims=True)
    return normalised


def fit_offsets(log_probabilities: np.ndarray, targets: np.ndarray, penalty: float) -> np.ndarray:
    """The constants (K,), float32, of least loss: the rows' sum of losses + penalty · the constants' sum of squares.

    Args:
        log_probabilities: (n, K) of rows that were not trained on.
        targets: (n, K) distributions.
        penalty: above 0, so that the constants are unique and few rows move them little.
    """
    scores, wanted = log_probabilities.astype(np.float64), targets.astype(np.float64).sum(0)
    offsets = np.zeros(scores.shape[1])
    for _ in range(_ITERATIONS):  # Newton's method; the loss is convex
        probabilities = np.exp(calibrated(scores, offsets))
        gradient = probabilities.sum(0) - wanted + 2.0 * penalty * offsets
        curvature = np.diag(probabilities.sum(0) + 2.0 * penalty) - probabilities.T @ probabilities
        step = np.linalg.solve(curvature, gradient)
        offsets -= step * min(1.0, 1.0 / float(np.abs(step).max() + 1e-30))  # at most a nat at once
        if np.abs(step).max() < _CLOSE_ENOUGH:
            break
    return offsets.astype(np.float32)


def cross_calibrated(scores: np.ndarray, targets: np.ndarray, fold: np.ndarray, penalty: float | None) -> np.ndarray:
    """Log-probabilities (n, K) with constants that were fitted on the other folds, so that the estimate stays fair."""
    if penalty is None:
        return scores
    found = np.empty_like(scores)
    for number in np.unique(fold):
        held = fold == number
        found[held] = calibrated(scores[held], fit_offsets(scores[~held], targets[~held], penalty))
    return found
