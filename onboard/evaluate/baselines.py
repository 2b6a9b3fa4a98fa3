"""Baselines: trained on the same rows as the version, and scored on the same held-out rows with the same metrics.

They give results a meaning: 70% is poor if 75% of the rows have the same label, or if word counts alone give 72%.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from onboard.data.targets import indicators_of
from onboard.domain.dataset import Dataset, Example
from onboard.evaluate.crossvalidation import cross_validated, merge_folds
from onboard.evaluate.evaluation import evaluate_classification, evaluate_regression
from onboard.evaluate.intervals import Metric
from onboard.evaluate.metrics import FloatArray, IntArray
from onboard.evaluate.sets import evaluate_sets
from onboard.evaluate.tfidf import TfidfFeatures

MOST_ROWS = 5000  # a sample of larger training sets, so that a baseline takes seconds
MOST_WEIGHTS = 4_000_000  # about 200 bytes each during fitting; MNLI's 5,000 pairs have a million
# Inverse penalties of logistic regression. With 32 and 100 rows 1 and 10 are equal; with 5,000 rows 10 is better for
# single texts (TREC 89% against 86%, IMDB 87% against 85%), and 1 has the better log-loss for pairs (MNLI 0.95, 1.07).
INVERSE_PENALTY_TEXTS = 10.0
INVERSE_PENALTY_PAIRS = 1.0
TOLERANCE = 1e-3  # halves the time; MNLI and TREC change by less than half a point
RIDGE_PENALTY = 3.0

Baselines = dict[str, dict[str, Metric]]


def score_baselines(
    dataset: Dataset, held_out: Sequence[Example], *, metric: str | None = None, seed: int = 0, learned: bool = True
) -> Baselines:
    """Return the metrics of each baseline, trained on `dataset.train` and scored on `held_out`.

    Classification: `majority` (the most frequent label of training and held-out rows together) and
    `tfidf_logistic_regression`. Regression: `mean` (of the training labels) and `tfidf_ridge`. Sets of labels:
    `commonest_set` and `tfidf_one_vs_rest`.

    Training rows alone would bias `majority`: the label that is most frequent after a hold-out is one with fewer
    held-out rows. With many labels, it may have none, and such a baseline would be too weak.

    Args:
        learned: whether TF-IDF is trained; the other baselines take no time.

    Raises:
        ValueError: there are no training or no held-out rows.
        InputError: the metric is unknown.
    """
    trained = predict_learned(dataset, dataset.train, held_out, seed) if learned else {}
    if dataset.kind == "regression":
        values = _values(held_out)
        predictions = {"mean": _mean(dataset.train, len(held_out)), **trained}
        scored = {name: evaluate_regression(values, predicted, metric) for name, predicted in predictions.items()}
    elif dataset.several_labels:
        truth = indicators_of(dataset.labels, held_out)
        predictions = {"commonest_set": _commonest_set(dataset, held_out), **trained}
        scored = {name: evaluate_sets(truth, scores, metric) for name, scores in predictions.items()}
    else:
        true_index = _indices(dataset, held_out)
        commonest = _commonest(_indices(dataset, dataset.train), true_index, len(dataset.labels))
        predictions = {"majority": commonest, **trained}
        scored = {
            name: evaluate_classification(true_index, probabilities, metric)
            for name, probabilities in predictions.items()
        }
    return _with_drawn_rows_noted(scored, len(dataset.train))


def cross_validate_baselines(
    dataset: Dataset, folds: IntArray, *, metric: str | None = None, seed: int = 0, learned: bool = True
) -> Baselines:
    """Return the same baselines by cross-validation over `dataset.train`, with the folds of the version.

    The most frequent label and the mean are those of all training rows, for the reason given in `score_baselines`.

    Args:
        folds: fold of every training row, (n,), below 0 for rows that are only trained on; at least two folds.
        learned: as in `score_baselines`.
    """
    judged = np.flatnonzero(folds >= 0)
    rows = [dataset.train[row] for row in judged]
    by_name: dict[str, list[tuple[IntArray, FloatArray]]] = {}
    for fold in np.unique(folds[judged]) if learned else ():
        left_out = np.flatnonzero(folds[judged] == fold)
        rest = [dataset.train[row] for row in np.flatnonzero(folds != fold)]
        for name, predicted in predict_learned(dataset, rest, [rows[place] for place in left_out], seed).items():
            by_name.setdefault(name, []).append((left_out, predicted))
    trained = {name: merge_folds(len(rows), parts) for name, parts in by_name.items()}
    if dataset.kind == "regression":
        merged = {"mean": _mean(dataset.train, len(rows)), **trained}
        values = _values(rows)
        return {
            name: cross_validated(evaluate_regression(values, predicted, metric)) for name, predicted in merged.items()
        }
    if dataset.several_labels:
        merged = {"commonest_set": _commonest_set(dataset, rows), **trained}
        truth = indicators_of(dataset.labels, rows)
        return {name: cross_validated(evaluate_sets(truth, scores, metric)) for name, scores in merged.items()}
    every_index = _indices(dataset, dataset.train)
    true_index = every_index[judged]
    merged = {"majority": _commonest(every_index[folds < 0], true_index, len(dataset.labels)), **trained}
    return {
        name: cross_validated(evaluate_classification(true_index, probabilities, metric))
        for name, probabilities in merged.items()
    }


def predict_learned(
    dataset: Dataset, train: Sequence[Example], rows: Sequence[Example], seed: int
) -> dict[str, FloatArray]:
    """Return predictions of the TF-IDF baseline for `rows`, by name: probabilities (n, K), or values (n,)."""
    if not train or not rows:
        raise ValueError(f"baselines need training and held-out rows, not {len(train)} and {len(rows)}")
    train_rows = _at_most(train, seed)
    if dataset.kind == "regression":
        return {"tfidf_ridge": _ridge(train_rows, rows)}
    if dataset.several_labels:
        return {"tfidf_one_vs_rest": _one_vs_rest(train_rows, indicators_of(dataset.labels, train_rows), rows)}
    learned = _logistic_regression(train_rows, _indices(dataset, train_rows), rows, len(dataset.labels))
    return {"tfidf_logistic_regression": learned}


def _shares(counts: IntArray | FloatArray, n: int) -> FloatArray:
    """Return shares of labels (K), with one row added to each, repeated for n rows, (n, K)."""
    return np.tile((counts + 1.0) / (counts + 1.0).sum(), (n, 1))


def _commonest(others_index: IntArray, judged_index: IntArray, classes: int) -> FloatArray:
    """Return the labels' shares in both for n judged rows, (n, K); ties go to the judged rows' most frequent."""
    judged = np.bincount(judged_index, minlength=classes)
    less_than_a_row = judged / (2 * len(judged_index))
    return _shares(np.bincount(others_index, minlength=classes) + judged + less_than_a_row, len(judged_index))


def _logistic_regression(
    train: Sequence[Example], train_index: IntArray, rows: Sequence[Example], classes: int
) -> FloatArray:
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    classes_present = np.unique(train_index)  # (P,), because a class may have no training row
    shares = _shares(np.bincount(train_index, minlength=classes), len(rows))
    features = _features(train, len(classes_present))
    if len(classes_present) < 2 or features is None:
        return shares
    inverse_penalty = INVERSE_PENALTY_PAIRS if features.pairs else INVERSE_PENALTY_TEXTS
    model = LogisticRegression(C=inverse_penalty, tol=TOLERANCE, max_iter=1000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # a thousand steps suffice for a baseline
        # they are classes even with two rows or fewer each
        warnings.filterwarnings("ignore", "The number of unique classes")
        model.fit(features(train), train_index)
    learned = np.zeros((len(rows), classes))
    learned[:, classes_present] = model.predict_proba(features(rows))
    # Classes without a training row keep their small share, to avoid an infinite log-loss.
    absent = np.setdiff1d(np.arange(classes), classes_present)
    learned *= 1 - shares[:, absent].sum(axis=1, keepdims=True)
    learned[:, absent] = shares[:, absent]
    return learned


def _commonest_set(dataset: Dataset, rows: Sequence[Example]) -> FloatArray:
    """Return the most frequent set of labels of training and judged rows as an answer for each judged row, (n, L)."""
    counts = Counter(row.label for row in (*dataset.train, *rows))
    (commonest, _), *_ = counts.most_common(1)
    answer = indicators_of(dataset.labels, [Example("", None, commonest)])
    return np.repeat(answer, len(rows), axis=0).astype(np.float64)


def _one_vs_rest(train: Sequence[Example], truth: FloatArray, rows: Sequence[Example]) -> FloatArray:
    """Return scores of a balanced logistic regression for each label, (n, L)."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    features = _features(train, truth.shape[1])
    shares = np.repeat(truth.mean(0, keepdims=True), len(rows), axis=0).astype(np.float64)
    if features is None:
        return shares
    inverse_penalty = INVERSE_PENALTY_PAIRS if features.pairs else INVERSE_PENALTY_TEXTS
    trained, row_features = features(train), features(rows)
    for label, has_label in enumerate(truth.T > 0):
        if has_label.all() or not has_label.any():
            continue  # keep its share, the only information
        model = LogisticRegression(C=inverse_penalty, tol=TOLERANCE, max_iter=1000, class_weight="balanced")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            shares[:, label] = model.fit(trained, has_label).predict_proba(row_features)[:, 1]
    return shares


def _ridge(train: Sequence[Example], rows: Sequence[Example]) -> FloatArray:
    from sklearn.linear_model import Ridge

    features = _features(train, 1)
    if features is None:
        return _mean(train, len(rows))
    model = Ridge(alpha=RIDGE_PENALTY, solver="sparse_cg", tol=1e-6, max_iter=1000)
    return np.asarray(model.fit(features(train), _values(train)).predict(features(rows)), dtype=np.float64)


def _features(train: Sequence[Example], classes: int) -> TfidfFeatures | None:
    """Return features fitted on the training texts, for a number of classes; None if all texts are blank."""
    try:
        return TfidfFeatures(train, MOST_WEIGHTS // classes)
    except ValueError:
        return None


def _at_most(train: Sequence[Example], seed: int) -> Sequence[Example]:
    """Return all training rows, or `MOST_ROWS` of them drawn by the seed."""
    if len(train) <= MOST_ROWS:
        return train
    drawn = np.random.default_rng(seed).choice(len(train), size=MOST_ROWS, replace=False)
    return [train[row] for row in np.sort(drawn)]


def _with_drawn_rows_noted(scored: Baselines, rows: int) -> Baselines:
    if rows <= MOST_ROWS:
        return scored
    note = f"trained on {MOST_ROWS:,} of the {rows:,} training rows"
    return {
        name: {
            key: replace(metric, note=note) if name.startswith("tfidf") else metric for key, metric in metrics.items()
        }
        for name, metrics in scored.items()
    }


def _indices(dataset: Dataset, rows: Sequence[Example]) -> IntArray:
    return np.asarray(dataset.class_indices(rows), dtype=np.int64)


def _values(rows: Sequence[Example]) -> FloatArray:
    return np.asarray([float(row.label) for row in rows], dtype=np.float64)


def _mean(train: Sequence[Example], n: int) -> FloatArray:
    return np.full(n, _values(train).mean())
