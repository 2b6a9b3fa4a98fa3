"""Probabilities of labels: from scores, blended, and their losses."""

from __future__ import annotations

from typing import Final

import numpy as np

_TINY: Final = 1e-12


def softmax(scores: np.ndarray) -> np.ndarray:
    """Return probabilities (n, K) of scores (n, K); n may be 0."""
    powers = np.exp(scores - scores.max(1, keepdims=True)) if scores.size else scores
    probabilities: np.ndarray = powers / powers.sum(1, keepdims=True)
    return probabilities


def sigmoid(scores: np.ndarray) -> np.ndarray:
    """Return independent probabilities (n, L) of scores (n, L)."""
    halves: np.ndarray = 0.5 * (1.0 + np.tanh(0.5 * scores))
    return halves


def blend(trained: np.ndarray, readout: np.ndarray, share: float) -> np.ndarray:
    """Return the weighted mean (n, K) of two kinds of probabilities."""
    together: np.ndarray = (1.0 - share) * trained.astype(np.float64) + share * readout
    return together


def mean_loss(probabilities: np.ndarray, targets: np.ndarray) -> float:
    """Return the mean loss per row in nats, of probabilities and target distributions (n, K), weighted by
    the targets.
    """
    return float(row_losses(probabilities, targets).mean())


def row_losses(probabilities: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """Return the loss of each row (n,) in nats; arguments as for `mean_loss`."""
    losses: np.ndarray = -(targets * np.log(np.maximum(probabilities, _TINY))).sum(1)
    return losses
