"""Targets of a model: a distribution over a dataset's labels, or over the buckets of a scale."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from onboard.data.regression import Buckets
from onboard.domain.dataset import Dataset, Example, Label, label_key
from onboard.domain.label_set import MULTILABEL, labels_in


def buckets_of(dataset: Dataset) -> Buckets | None:
    """Return the buckets of a regression dataset; None for classification."""
    return Buckets(dataset.low, dataset.high) if dataset.low is not None and dataset.high is not None else None


def targets_of(dataset: Dataset, rows: Sequence[Example]) -> np.ndarray:
    """Return a distribution over labels or buckets per row (n, K), float32; for sets of labels, 1 for every label."""
    buckets = buckets_of(dataset)
    if dataset.kind == MULTILABEL:
        return indicators_of(dataset.labels, rows)
    if buckets is not None:
        return np.array([buckets.soft_target(float(row.label)) for row in rows], dtype=np.float32)
    return np.eye(len(dataset.labels), dtype=np.float32)[dataset.class_indices(rows)]


def indicators_of(labels: Sequence[Label], rows: Sequence[Example]) -> np.ndarray:
    """Return whether each row has each label, (n, L) float32. Raises KeyError: a row has another label."""
    places = {label_key(label): place for place, label in enumerate(labels)}
    indicators = np.zeros((len(rows), len(labels)), dtype=np.float32)
    for number, row in enumerate(rows):
        indicators[number, [places[label_key(label)] for label in labels_in(row.label)]] = 1.0
    return indicators


def label_weights(dataset: Dataset) -> np.ndarray:
    """Return the weight of a row of each label (K,): 1/√(training rows of the label), with mean 1 over training rows.

    This is between natural and equal shares of the labels: docs/decisions/0020. For sets of labels, all weights are 1.
    """
    if dataset.kind == MULTILABEL:
        return np.ones(1, dtype=np.float32)
    rows = np.bincount(dataset.class_indices(dataset.train), minlength=len(dataset.labels))
    roots = np.sqrt(np.maximum(rows, 1))
    weights: np.ndarray = rows.sum() / roots.sum() / roots
    return weights.astype(np.float32)
