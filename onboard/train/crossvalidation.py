"""Out-of-fold predictions where every row is needed for training: by embeddings that have not seen the row."""

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
    """Indices of the rows that are held out, and of those that are trained on, all of them and each share of them."""

    held: np.ndarray
    kept: np.ndarray
    shares: Mapping[float, np.ndarray]


@dataclass(frozen=True)
class OutOfFold:
    """Log-probabilities of m of the n training rows under embeddings that were trained without them.

    Args:
        fold: of each row (n,), or `IN_NONE`.
        scores: (m, K), of the rows that are in a fold, in their order.
        curve: of embeddings that were trained on a share of the fold's rows, by that share (1 is `scores`), (m, K);
            empty where there was no time for that.
        rows: how many rows an embedding of a fold or its start was trained on, on average; by share (1 is all of them).
        z: (folds, t) the embeddings that were trained on all rows but those of a fold.
        parts: the folds, with the rows that were trained on.
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
        """Whether a learning curve was wanted."""
        return any(part.shares for part in self.parts)

    @property
    def judged(self) -> np.ndarray:
        """Indices of the rows that are in a fold (m,)."""
        return in_a_fold(self.fold)


def fold_of(count: int, parted: Sequence[Fold]) -> np.ndarray:
    """The fold of each of so many rows (n,), or `IN_NONE`."""
    fold = np.full(count, IN_NONE, dtype=np.int64)
    for number, part in enumerate(parted):
        fold[part.held] = number
    return fold


def in_a_fold(fold: np.ndarray) -> np.ndarray:
    """Indices of the rows that are in one (m,), of the fold of every row (n,)."""
    judged: np.ndarray = np.flatnonzero(fold != IN_NONE)
    return judged


def rows_in_folds(dataset: Dataset, fold: np.ndarray) -> tuple[Example, ...]:
    """The training rows that are in one, of the fold of every row (n,)."""
    return tuple(dataset.train[row] for row in in_a_fold(fold))


def part_rows(dataset: Dataset, seed: int, shares: Sequence[float] = (), known: np.ndarray | None = None) -> list[Fold]:
    """The folds of the training rows; none with fewer than 8 rows to hold out, and no shares with fewer than 16 rows.

    Where all rows have one text, case and blanks aside, there are none either.
    A row that the start knows is no witness, nor is one whose label could not be learned without it: both are trained
    on by all folds.

    Args:
        dataset: whose training rows are parted; folds and shares are stratified.
        seed: of the draw.
        shares: of each fold's rows that are trained on too, above 0 and below 1.
        known: whether each row (n,) has trained what the training starts from; None where none has.
    """
    count = len(dataset.train)
    if count < FEWEST_FOLDED_ROWS:
        return []
    parted = [np.array(held) for held in folds(dataset, FOLDS, seed)]
    witness = _witnesses(dataset, parted, known)
    if len(parted) < 2 or witness.sum() < FEWEST_FOLDED_ROWS:
        return []
    dealt = by_stratum(dataset, seed)  # evenly spaced, they are fair samples
    parts = []
    for held in filter(len, (held[witness[held]] for held in parted)):
        left_out = set(held.tolist())
        rest = np.array([index for index in dealt if index not in left_out])
        of_shares = {share: _spaced(rest, share) for share in shares if count >= FEWEST_CURVE_ROWS}
        parts.append(Fold(held, np.sort(rest), of_shares))
    return parts


def _witnesses(dataset: Dataset, parted: Sequence[np.ndarray], known: np.ndarray | None) -> np.ndarray:
    """Whether each row (n,) is not known, and its label is found outside of its fold, or on a known row of it."""
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
    """Log-probabilities (m, K) of all rows of folds, in their order, under the fold's own z (t,), in mixed batches."""
    held = np.concatenate([fold.held for fold in parted])
    of = np.repeat(np.arange(len(parted)), [len(fold.held) for fold in parted])
    generated = engine.hypernetwork(torch.from_numpy(np.stack(z)).to(engine.device))
    tries = [trie] * len(parted)
    scores = mixed_log_probabilities(engine, [ids[row] for row in held], generated, tries, of, before_batch, at_once)
    in_order: np.ndarray = scores[np.argsort(held)]
    return in_order


def mean_loss(scores: np.ndarray, targets: np.ndarray) -> float:
    """Mean loss a row in nats, of log-probabilities and target distributions (n, K)."""
    return float(-(targets * scores).sum(1).mean())


def log_of(probabilities: np.ndarray) -> np.ndarray:
    """Log-probabilities of stored probabilities (n, K), those that underflowed to 0 as the least that float32 holds."""
    scores: np.ndarray = np.log(np.maximum(probabilities, np.finfo(np.float32).tiny))
    return scores
