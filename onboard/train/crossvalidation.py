"""Out-of-fold predictions by embeddings that were trained without the row, when no row can be held out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import torch

from onboard.data.limits import FEWEST_FOLDED_ROWS
from onboard.data.splits import by_stratum, folds
from onboard.domain.dataset import Dataset, Example
from onboard.model.batched import mixed_log_probabilities
from onboard.model.engine import Engine
from onboard.model.memory import RowsAtOnce
from onboard.model.scoring import LabelTrie
from onboard.train.settings import FEWEST_CURVE_ROWS, FOLDS

IN_NONE: Final = -1


@dataclass(frozen=True)
class Fold:
    """Indices of the held-out rows and of the training rows, all of them and each share of them."""

    held: np.ndarray
    kept: np.ndarray
    shares: Mapping[float, np.ndarray]


@dataclass(frozen=True)
class OutOfFold:
    """Log-probabilities of m of the n training rows under embeddings that were trained without them.

    Args:
        fold: fold of each row (n,), or `IN_NONE`.
        scores: (m, K) of the rows that are in a fold, in order.
        curve: (m, K) by share of the fold's training rows (1 is `scores`); empty if there was no time for it.
        rows: by share, mean number of rows that trained the embedding of a fold or its start (1 is all of them).
        z: (folds, t) embeddings that were trained on all rows outside the fold.
        parts: the folds, with their training rows.
        of_readout: whether the curve is that of readouts alone.
    """

    fold: np.ndarray
    scores: np.ndarray
    curve: Mapping[float, np.ndarray]
    rows: Mapping[float, float]
    z: np.ndarray
    parts: Sequence[Fold] = ()
    of_readout: bool = False

    @property
    def has_shares(self) -> bool:
        """Whether a learning curve was requested."""
        return any(part.shares for part in self.parts)

    @property
    def judged(self) -> np.ndarray:
        """Indices of the rows that are in a fold (m,)."""
        return in_a_fold(self.fold)


def fold_of(count: int, parted: Sequence[Fold]) -> np.ndarray:
    """Return the fold of each of `count` rows (n,), or `IN_NONE`."""
    fold = np.full(count, IN_NONE, dtype=np.int64)
    for number, part in enumerate(parted):
        fold[part.held] = number
    return fold


def in_a_fold(fold: np.ndarray) -> np.ndarray:
    """Return indices of the rows in folds (m,), given the fold of every row (n,)."""
    judged: np.ndarray = np.flatnonzero(fold != IN_NONE)
    return judged


def rows_in_folds(dataset: Dataset, fold: np.ndarray) -> tuple[Example, ...]:
    """Return the training rows in folds, given the fold of every row (n,)."""
    return tuple(dataset.train[row] for row in in_a_fold(fold))


def part_rows(dataset: Dataset, seed: int, shares: Sequence[float] = (), known: np.ndarray | None = None) -> list[Fold]:
    """Divide the training rows into folds; none with fewer than 8 rows to hold out, no shares with fewer than 16.

    There are none either if all rows have the same text, ignoring case and whitespace. Rows that trained the start
    cannot judge, nor can rows with a label that only they have; all folds train on both.

    Args:
        dataset: dataset with the training rows; folds and shares are stratified.
        shares: shares of each fold's training rows to train on as well, between 0 and 1.
        known: whether each row (n,) trained the start of the training; None if none did.
    """
    count = len(dataset.train)
    if count < FEWEST_FOLDED_ROWS:
        return []
    parted = [np.array(held) for held in folds(dataset, FOLDS, seed)]
    witness = _witnesses(dataset, parted, known)
    if len(parted) < 2 or witness.sum() < FEWEST_FOLDED_ROWS:
        return []
    dealt = by_stratum(dataset, seed)  # evenly spaced rows are fair samples
    parts = []
    for held in filter(len, (held[witness[held]] for held in parted)):
        left_out = set(held.tolist())
        rest = np.array([index for index in dealt if index not in left_out])
        of_shares = {share: _spaced(rest, share) for share in shares if count >= FEWEST_CURVE_ROWS}
        parts.append(Fold(held, np.sort(rest), of_shares))
    return parts


def _witnesses(dataset: Dataset, parted: Sequence[np.ndarray], known: np.ndarray | None) -> np.ndarray:
    """Return whether each row (n,) is new and its label also occurs outside its fold, or on a known row."""
    witness = np.ones(len(dataset.train), dtype=np.bool_) if known is None else ~known
    if dataset.kind != "classification":
        return witness
    labels = np.array(dataset.class_indices(dataset.train))
    for held in parted:
        rest = np.ones(len(labels), dtype=np.bool_)
        rest[held] = ~witness[held]
        witness[held] &= np.isin(labels[held], labels[rest])
    return witness


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
    """Return log-probabilities (m, K) of all rows in folds, in order, under their fold's z (t,), in mixed batches."""
    held = np.concatenate([fold.held for fold in parted])
    of = np.repeat(np.arange(len(parted)), [len(fold.held) for fold in parted])
    generated = engine.hypernetwork(torch.from_numpy(np.stack(z)).to(engine.device))
    tries = [trie] * len(parted)
    scores = mixed_log_probabilities(engine, [ids[row] for row in held], generated, tries, of, before_batch, at_once)
    in_order: np.ndarray = scores[np.argsort(held)]
    return in_order


def mean_loss(scores: np.ndarray, targets: np.ndarray) -> float:
    """Return the mean loss per row in nats, of log-probabilities and target distributions (n, K)."""
    return float(-(targets * scores).sum(1).mean())


def log_of(probabilities: np.ndarray) -> np.ndarray:
    """Return log-probabilities of stored probabilities (n, K); 0 becomes the smallest positive float32."""
    scores: np.ndarray = np.log(np.maximum(probabilities, np.finfo(np.float32).tiny))
    return scores
