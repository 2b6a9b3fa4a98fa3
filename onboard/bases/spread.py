"""What a base says of the readouts of its tasks: in which directions features of texts with one label differ most.

Measured once, when the base is made, as the covariance within the labels of its sources, pooled over them.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

import numpy as np

from onboard.statistics.spread import Spread

SPREAD: Final = "spread.safetensors"  # in a base's folder
DIRECTIONS: Final = 64  # the others count as alike: held-out tasks gain nothing by more
EVENED: Final = 0.7  # share of a covariance that is taken as measured, the rest as alike in all directions


def spread_of(tasks: Iterable[tuple[np.ndarray, np.ndarray]]) -> Spread | None:
    """From features (n, h) and labels (n,) of each task; None where no task has two rows of a label."""
    within = [_within(features.astype(np.float64), labels) for features, labels in tasks]
    measured = [covariance for covariance in within if covariance is not None]
    if not measured:
        return None
    variances, vectors = np.linalg.eigh(np.mean(measured, axis=0))  # ascending
    count = min(DIRECTIONS, len(variances) - 1)
    usual, mean = variances[:-count].mean(), variances.mean()
    evened = EVENED * variances[-count:] + (1 - EVENED) * mean
    factors = np.sqrt((EVENED * usual + (1 - EVENED) * mean) / evened)
    return Spread(vectors[:, -count:].T.astype(np.float16), factors.astype(np.float32))


def _within(features: np.ndarray, labels: np.ndarray) -> np.ndarray | None:
    kinds, of_row = np.unique(labels, return_inverse=True)
    if len(features) <= len(kinds):
        return None
    means = np.stack([features[of_row == kind].mean(0) for kind in range(len(kinds))])
    apart = features - means[of_row]
    covariance: np.ndarray = apart.T @ apart / (len(features) - len(kinds))
    return covariance


def write_spread(spread: Spread, path: Path) -> None:
    """One safetensors file. Raises OSError, safetensors.SafetensorError: it cannot be written."""
    from safetensors.numpy import save_file

    save_file({"directions": np.ascontiguousarray(spread.directions), "factors": spread.factors}, path)


def read_spread(path: Path) -> Spread:
    """What `write_spread` wrote.

    Raises:
        KeyError, ValueError, OSError, safetensors.SafetensorError: it is another file, or damaged.
    """
    from safetensors.numpy import load_file

    stored = load_file(path)
    spread = Spread(stored["directions"], stored["factors"])
    if not (np.isfinite(spread.directions).all() and np.isfinite(spread.factors).all()):
        raise ValueError("numbers that are not finite")
    return spread
