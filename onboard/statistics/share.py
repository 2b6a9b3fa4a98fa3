"""How much of the answer is a readout's where it answers beside an embedding, or beside weights of the task's own."""

from __future__ import annotations

from typing import Final

import numpy as np

from onboard.statistics.probabilities import blend, mean_loss

PRIOR_SHARE: Final = 0.7  # of the readout beside an embedding: what held-out tasks say
PRIOR_BESIDE_WEIGHTS: Final = 0.5  # the same, beside weights of the task's own
PRIOR_ROWS: Final = 16.0  # how many rows that counts as
CLEARLY: Final = 4.0  # nats by which rows are to speak for the embedding alone; fewer are what 16 rows say by chance
_SHARES: Final = np.linspace(0.05, 0.95, 19)


def choose_share(
    trained: np.ndarray, readout: np.ndarray, targets: np.ndarray, prior_share: float = PRIOR_SHARE
) -> float:
    """How much of the answer is to be the readout's; 0 where what was trained is clearly better alone.

    The share that rows want, who trained neither, as if `PRIOR_ROWS` more had wanted `prior_share`.

    Args:
        trained, readout: probabilities (m, K) of rows that did not train what answers them.
        targets: (m, K) distributions over labels or buckets, times what the row counts.
        prior_share: what is usual.
    """
    if not len(targets):
        return prior_share
    losses = np.array([mean_loss(blend(trained, readout, share), targets) for share in _SHARES]) * len(targets)
    prior = prior_share * np.log(_SHARES) + (1 - prior_share) * np.log(1 - _SHARES)
    best = int(np.argmin(losses - PRIOR_ROWS * prior))
    alone = mean_loss(trained, targets) * len(targets)
    return float(round(_SHARES[best], 2)) if losses[best] < alone + CLEARLY else 0.0
