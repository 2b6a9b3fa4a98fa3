"""Temperature scaling, fitted on rows outside the training.

Probabilities p become p^(1/T), normalized: a temperature above 1 makes answers less certain, below 1 more certain, and
it changes no label (Guo et al. 2017, arXiv 1706.04599, section 4.2). Few rows determine it poorly, so it is the most
likely one under a prior: ln T is normal around 0, with a deviation that was chosen on tasks that no base was trained on
(bench/results/calibration.md).
"""

from __future__ import annotations

from typing import Final

import numpy as np

from onboard.statistics.probabilities import mean_loss, softmax

DEVIATION: Final = 0.3  # of ln T
_LOGARITHMS: Final = np.linspace(-1.5, 1.5, 151)  # candidates
_TINY: Final = 1e-12


def tempered(probabilities: np.ndarray, temperature: float) -> np.ndarray:
    """Return probabilities (n, K) at a temperature; at 1 they are unchanged."""
    if temperature == 1.0:
        return probabilities
    return softmax(_logs(probabilities) / temperature)


def fit_temperature(probabilities: np.ndarray, targets: np.ndarray, deviation: float = DEVIATION) -> float:
    """Return the most likely temperature under the prior; 1 without rows.

    Args:
        probabilities: (m, K) of rows outside the training; m may be 0.
        targets: (m, K) distributions over the labels.
        deviation: of ln T; infinite to use the rows alone.
    """
    if not len(targets):
        return 1.0
    logs = _logs(probabilities)
    losses = np.array([mean_loss(softmax(logs / np.exp(tried)), targets) for tried in _LOGARITHMS]) * len(targets)
    prior = _LOGARITHMS**2 / (2 * deviation**2)
    return round(float(np.exp(_LOGARITHMS[int(np.argmin(losses + prior))])), 3)


def _logs(probabilities: np.ndarray) -> np.ndarray:
    logs: np.ndarray = np.log(np.maximum(probabilities.astype(np.float64), _TINY))
    return logs
