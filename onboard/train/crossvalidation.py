"""Out-of-fold predictions where every row is needed for training: by embeddings that have not seen the row."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import torch

from onboard.data.limits import HOLDOUT_FREE_ROWS
from onboard.data.splits import folds
from onboard.domain.dataset import Dataset
from onboard.model.batched import mixed_log_probabilities
from onboard.model.engine import Engine
from onboard.model.memory import RowsAtOnce
from onboard.model.scoring import LabelTrie

FOLDS: Final = 4
FEWEST_ROWS: Final = 8
FEWEST_CURVE_ROWS: Final = 16  # below them a half of a fold's rows is too little to train on


@dataclass(frozen=True)
class Fold:
    """Indices of the rows that are held out, and of those that are trained on, all of them and each share of them."""

    held: np.ndarray
    kept: np.ndarray
    shares: Mapping[float, np.ndarray]


@dataclass(frozen=True)
class OutOfFold:
    """Every training row's log-probabilities under embeddings that were trained without it.

    Args:
        fold: of each row (n,).
        scores: (n, K).
        curve: of embeddings that were trained on a share of the fold's rows, by that share, (n, K).
        rows: how many rows an embedding of a fold was trained on, on average; by share (1 is all of them).
        z: (folds, t) the embeddings that were trained on all rows but those of a fold.
    """

    fold: np.ndarray
    scores: np.ndarray
    curve: Mapping[float, np.ndarray]
    rows: Mapping[float, float]
    z: np.ndarray


def is_folded(dataset: Dataset) -> bool:
    """Whether a job trains on all rows and asks folds how good it is: nothing is held out, or could be learned then."""
    return not dataset.validation and len(dataset.train) <= HOLDOUT_FREE_ROWS and not dataset.one_row_each


def part_rows(dataset: Dataset, seed: int, shares: Sequence[float] = ()) -> list[Fold]:
    """The folds of the training rows; none with fewer than 8 rows, and no shares with fewer than 16.

    Args:
        dataset: whose training rows are parted; folds and shares are stratified.
        seed: of the draw.
        shares: of each fold's rows that are trained on too, above 0 and below 1.
    """
    count = len(dataset.train)
    if count < FEWEST_ROWS:
        return []
    dealt = [index for (index,) in folds(dataset, count, seed)]  # by stratum: evenly spaced, they are fair samples
    found = []
    for held in folds(dataset, FOLDS, seed):
        kept = np.array([index for index in dealt if index not in set(held)])
        of_shares = {share: _spaced(kept, share) for share in shares if count >= FEWEST_CURVE_ROWS}
        found.append(Fold(np.array(held), np.sort(kept), of_shares))
    return found


def _spaced(rows: np.ndarray, share: float) -> np.ndarray:
    places = np.arange(max(1, round(share * len(rows)))) / share
    return np.sort(rows[np.minimum(places.astype(np.int64), len(rows) - 1)])


@torch.inference_mode()
def held_out_scores(
    engine: Engine,
    ids: Sequence[Sequence[int]],
    parted: Sequence[Fold],
    z: Sequence[np.ndarray],
    trie: LabelTrie,
    before_batch: Callable[[], None] = lambda: None,
    at_once: RowsAtOnce | None = None,
) -> np.ndarray:
    """Log-probabilities (n, K) of all rows, those of each fold under its own z (t,), in mixed batches."""
    held = np.concatenate([fold.held for fold in parted])
    of = np.repeat(np.arange(len(parted)), [len(fold.held) for fold in parted])
    generated = engine.hypernetwork(torch.from_numpy(np.stack(z)).to(engine.device))
    tries = [trie] * len(parted)
    found = mixed_log_probabilities(engine, [ids[row] for row in held], generated, tries, of, before_batch, at_once)
    scores = np.empty_like(found)
    scores[held] = found
    return scores


def mean_loss(scores: np.ndarray, targets: np.ndarray) -> float:
    """Mean loss a row in nats, of log-probabilities and target distributions (n, K)."""
    return float(-(targets * scores).sum(1).mean())


def log_of(probabilities: Sequence[Sequence[float]]) -> np.ndarray:
    """Log-probabilities of stored probabilities (n, K), those that underflowed to 0 as the least that float32 holds."""
    scores: np.ndarray = np.log(np.maximum(np.array(probabilities), np.finfo(np.float32).tiny))
    return scores
