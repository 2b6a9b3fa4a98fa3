"""The share of a readout in the answer, in combination with an embedding or task-specific weights."""

from __future__ import annotations

from typing import Final

import numpy as np

from onboard.statistics.probabilities import blend, mean_loss

EMBEDDING_ROWS: Final = 3.0  # rows that an embedding's answer is worth relative to a readout, from held-out tasks
PRIOR_BESIDE_WEIGHTS: Final = 0.5  # usual share of the readout in combination with task-specific weights
PRIOR_ROWS: Final = 16.0  # rows that the usual share counts as
CLEARLY: Final = 4.0  # evidence in nats for the embedding alone; 16 rows can show less by chance
_SHARES: Final = np.linspace(0.05, 0.95, 19)


def usual_share(rows: int) -> float:
    """Return the usual share of a readout in combination with an embedding; it grows with the rows."""
    return rows / (rows + EMBEDDING_ROWS)


def choose_share(trained: np.ndarray, readout: np.ndarray, targets: np.ndarray, usual: float) -> float:
    """Choose the share of the readout; 0 if the training is clearly better alone.

    It is the best share for rows outside both, regularized as if `PRIOR_ROWS` more rows favored the usual share.

    Args:
        trained, readout: out-of-sample probabilities (m, K).
        targets: (m, K) distributions over labels or buckets, times the weight of the row.
        usual: the usual share.
    """
    if not len(targets):
        return usual
    losses = np.array([mean_loss(blend(trained, readout, share), targets) for share in _SHARES]) * len(targets)
    prior = usual * np.log(_SHARES) + (1 - usual) * np.log(1 - _SHARES)
    best = int(np.argmin(losses - PRIOR_ROWS * prior))
    alone = mean_loss(trained, targets) * len(targets)
    return float(round(_SHARES[best], 2)) if losses[best] < alone + CLEARLY else 0.0
