"""A readout of a cell's rows and of its labels' words, without an embedding; with a prior where one is given."""

from __future__ import annotations

import numpy as np

from bench.heldout.features import Features
from bench.heldout.material import Cell
from onboard.data.splits import is_folded
from onboard.data.verbaliser import words_of
from onboard.domain.dataset import Example
from onboard.model.readout_features import blocks_of
from onboard.statistics.prior import Prior
from onboard.statistics.readout import Fitted, fit_readout
from onboard.train.crossvalidation import fold_of, in_a_fold, part_rows


def fit_alone(cell: Cell, features: Features, prior: Prior | None = None) -> Fitted:
    """The readout that a job would fit on what a reader says of the rows: without a prior one that knows no other task.

    Args:
        cell: whose rows are held out as a job holds them out, and are in the folds that its embedding would have.
        features: of our encoder, or of another in the same blocks.
        prior: of earlier tasks of the same form.

    Raises:
        InputError: the rows make none.
    """
    bench, rows = cell.bench, cell.bench.dataset.train
    values, names = None, None
    if bench.buckets is None:
        names = features.of(cell.task, label_rows(cell))
    else:
        values = np.array(bench.buckets.values)
    blocks = blocks_of(pairs=rows[0].text_b is not None)
    seen = features.of(cell.task, rows)
    return fit_readout(seen, bench.weighted(rows), groups_of(cell), values, blocks, names, prior)


def label_rows(cell: Cell) -> list[Example]:
    """The words of the labels that the draw has, as texts."""
    return [Example(words_of(label), None, label) for label in cell.bench.dataset.labels]


def groups_of(cell: Cell) -> list[np.ndarray]:
    """Indices of the rows that are judged together: those of a fold; every row by itself where a job has no folds."""
    dataset = cell.bench.dataset
    parted = part_rows(dataset, cell.draw) if is_folded(dataset) else []
    if not parted:
        return [np.array([row]) for row in range(len(dataset.train))]
    fold = fold_of(len(dataset.train), parted)
    return [np.flatnonzero(fold == number) for number in np.unique(fold[in_a_fold(fold)])]
