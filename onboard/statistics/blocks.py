"""Features in blocks of columns with equal weight."""

from __future__ import annotations

from typing import Final

import numpy as np

BLOCKS: Final = 6  # in the features of a readout; see `onboard.model.readout_features`


def lengths_of_blocks(centred: np.ndarray, blocks: int, counted: np.ndarray | None = None) -> np.ndarray:
    """Return the divisors of columns (h,) of centered rows (n, h) that make all blocks equal, with mean square 1 in
    total.

    Args:
        counted: (n,) weight of each row; None weights all equally.
    """
    squares = np.average(centred**2, axis=0, weights=counted).reshape(blocks, -1).sum(1)
    return np.repeat(np.sqrt(np.where(squares > 0, blocks * squares, 1.0)), centred.shape[1] // blocks)


def with_names(
    features: np.ndarray, targets: np.ndarray, names: np.ndarray, blocks: int, counted: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Append a row per label with the features of its words: features (n + K, h) and targets (n + K, K).

    Words are not texts of the task. In every block they are scaled to the mean length of the rows, around their mean.
    Blocks that words do not have, such as those of text pairs, get the mean.

    Args:
        features: (n, h) of the rows.
        targets: (n, K), times the weight of the row.
        names: features of the labels' words (K, the first columns of h).
        blocks: number of blocks in the rows.
        counted: (n,) weight of each row; None takes it from the targets.
    """
    counted = targets.sum(1, dtype=np.float64) if counted is None else counted
    mean = np.average(features.astype(np.float64), axis=0, weights=counted)
    apart = np.zeros((len(names), features.shape[1]))
    apart[:, : names.shape[1]] = names - mean[: names.shape[1]]
    as_long = lengths_of_blocks(features - mean, blocks, counted) / lengths_of_blocks(apart, blocks)
    return np.vstack([features, mean + apart * as_long]), np.vstack([targets, np.eye(len(names))])
