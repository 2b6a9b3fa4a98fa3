"""How much of the answer is a readout's where it answers beside an embedding, or beside weights of the task's own."""

from __future__ import annotations

from typing import Final

import numpy as np

from onboard.statistics.probabilities import blend, mean_loss

EMBEDDING_ROWS: Final = 3.0  # as many rows as an embedding's answer is worth beside a readout: held-out tasks say so
PRIOR_BESIDE_WEIGHTS: Final = 0.5  # usual share of the readout beside weights of the task's own
PRIOR_ROWS: Final = 16.0  # how many rows the usual share counts as
CLEARLY: Final = 4.0  # nats by which rows are to speak for the embedding alone; fewer are what 16 rows say by chance
_SHARES: Final = np.linspace(0.05, 0.95, 19)


def usual_share(rows: int) -> float:
    """How much of the answer is usually a readout's beside an embedding: the more rows made it, the more."""
    return rows / (rows + EMBEDDING_ROWS)


def choose_share(trained: np.ndarray, readout: np.ndarray, targets: np.ndarray, usual: float) -> float:
    """How much of the answer is to be the readout's; 0 where what was trained is clearly better alone.

    The share that rows want, who trained neither, as if `PRIOR_ROWS` more had wanted the usual one.

    Args:
        trained, readout: probabilities (m, K) of rows that did not train what answers them.
        targets: (m, K) distributions over labels or buckets, times what the row counts.
        usual: the usual share.
    """
    if not len(targets):
        return usual
    losses = np.array([mean_loss(blend(trained, readout, share), targets) for share in _SHARES]) * len(targets)
    prior = usual * np.log(_SHARES) + (1 - usual) * np.log(1 - _SHARES)
    best = int(np.argmin(losses - PRIOR_ROWS * prior))
    alone = mean_loss(trained, targets) * len(targets)
    return float(round(_SHARES[best], 2)) if losses[best] < alone + CLEARLY else 0.0
