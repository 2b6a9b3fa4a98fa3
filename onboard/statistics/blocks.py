"""Features that come in blocks of columns, of which each is to say as much as any other."""

from __future__ import annotations

from typing import Final

import numpy as np

BLOCKS: Final = 6  # of what a readout is asked with: `onboard.model.readout_features` says which


def lengths_of_blocks(centred: np.ndarray, blocks: int, counted: np.ndarray | None = None) -> np.ndarray:
    """What each column (h,) of centred rows (n, h) is divided by: blocks are alike then, and of mean square 1 in all.

    Args:
        counted: (n,) what each row counts; None takes all alike.
    """
    squares = np.average(centred**2, axis=0, weights=counted).reshape(blocks, -1).sum(1)
    return np.repeat(np.sqrt(np.where(squares > 0, blocks * squares, 1.0)), centred.shape[1] // blocks)


def with_names(
    features: np.ndarray, targets: np.ndarray, names: np.ndarray, blocks: int, counted: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Features (n + K, h) and targets (n + K, K) with a row more of every label, of its own words.

    Words are not texts of the task: in every block they are made as long, around the mean of the rows, as rows are in
    the mean. Blocks that they have not, as those of what parts a pair, are as in that mean.

    Args:
        features: (n, h) of the rows.
        targets: (n, K), times what the row counts.
        names: features of the labels' words (K, the first columns of h).
        blocks: how many blocks of columns the rows have.
        counted: (n,) what each row counts; None where its targets say it.
    """
    counted = targets.sum(1, dtype=np.float64) if counted is None else counted
    mean = np.average(features.astype(np.float64), axis=0, weights=counted)
    apart = np.zeros((len(names), features.shape[1]))
    apart[:, : names.shape[1]] = names - mean[: names.shape[1]]
    as_long = lengths_of_blocks(features - mean, blocks, counted) / lengths_of_blocks(apart, blocks)
    return np.vstack([features, mean + apart * as_long]), np.vstack([targets, np.eye(len(names))])
