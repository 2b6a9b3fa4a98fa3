"""Probabilities of labels: from scores, two kinds of them as one, and how far they are from what is right."""

from __future__ import annotations

from typing import Final

import numpy as np

_TINY: Final = 1e-12


def softmax(scores: np.ndarray) -> np.ndarray:
    """Probabilities (n, K) of scores (n, K); n may be 0."""
    powers = np.exp(scores - scores.max(1, keepdims=True)) if scores.size else scores
    probabilities: np.ndarray = powers / powers.sum(1, keepdims=True)
    return probabilities


def sigmoid(scores: np.ndarray) -> np.ndarray:
    """Independent probabilities (n, L) of scores (n, L)."""
    halves: np.ndarray = 0.5 * (1.0 + np.tanh(0.5 * scores))
    return halves


def blend(trained: np.ndarray, readout: np.ndarray, share: float) -> np.ndarray:
    """Probabilities (n, K) of both as one."""
    together: np.ndarray = (1.0 - share) * trained.astype(np.float64) + share * readout
    return together


def mean_loss(probabilities: np.ndarray, targets: np.ndarray) -> float:
    """Mean loss a row in nats, of probabilities and target distributions (n, K), each as often as its target counts."""
    return float(row_losses(probabilities, targets).mean())


def row_losses(probabilities: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """The loss of each row (n,) in nats; arguments as of `mean_loss`."""
    losses: np.ndarray = -(targets * np.log(np.maximum(probabilities, _TINY))).sum(1)
    return losses
