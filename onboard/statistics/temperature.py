"""Temperatures: how sure answers are to sound, fitted on rows that did not train what answers them.

Probabilities p become p^(1/T), normalised: above 1 a temperature makes every answer less sure, below 1 surer, and it
moves no label (Guo et al. 2017, arXiv 1706.04599, section 4.2). Few rows say little of it, so it is the likeliest one
under a prior: ln T is normal around 0, with a deviation that was chosen on tasks that no base was trained on
(bench/results/calibration.md).
"""

from __future__ import annotations

from typing import Final

import numpy as np

from onboard.statistics.probabilities import mean_loss, softmax

DEVIATION: Final = 0.3  # of ln T
_LOGARITHMS: Final = np.linspace(-1.5, 1.5, 151)  # that are tried
_TINY: Final = 1e-12


def tempered(probabilities: np.ndarray, temperature: float) -> np.ndarray:
    """Probabilities (n, K) at a temperature; at 1 as they are."""
    if temperature == 1.0:
        return probabilities
    return softmax(_logs(probabilities) / temperature)


def fit_temperature(probabilities: np.ndarray, targets: np.ndarray, deviation: float = DEVIATION) -> float:
    """The likeliest temperature of rows under the prior; 1 without rows.

    Args:
        probabilities: (m, K) of rows that did not train what answers them; m may be 0.
        targets: (m, K) distributions over the labels.
        deviation: of ln T; infinite where the rows alone are to choose.
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
