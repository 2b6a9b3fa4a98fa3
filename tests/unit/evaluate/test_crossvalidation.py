import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onboard.evaluate import (
    cross_validated_classification,
    cross_validated_regression,
    evaluate_classification,
    merge_folds,
    stratified_folds,
)


@given(st.lists(st.integers(0, 3), min_size=5, max_size=64), st.integers(2, 5), st.integers(0, 3))
def test_folds_are_even_in_size_and_in_every_class(labels, folds, seed):
    index = np.asarray(labels)
    dealt = stratified_folds(index, folds, seed=seed)
    for rows in (dealt, *(dealt[index == k] for k in set(labels))):
        counts = np.bincount(rows, minlength=folds)
        assert counts.max() - counts.min() <= 1
    assert np.array_equal(dealt, stratified_folds(index, folds, seed=seed))


def test_another_seed_deals_other_folds():
    index = np.zeros(40, dtype=np.int64)
    assert not np.array_equal(stratified_folds(index, 4, seed=0), stratified_folds(index, 4, seed=1))


@pytest.mark.parametrize("folds", [1, 4])
def test_one_fold_or_more_folds_than_rows_are_refused(folds):
    with pytest.raises(ValueError, match="folds of 3 rows"):
        stratified_folds(np.zeros(3, dtype=np.int64), folds)


def test_merging_puts_every_prediction_back_to_its_row():
    predictions = np.random.default_rng(0).dirichlet(np.ones(3), size=10)
    folds = np.array([2, 0, 1, 1, 0, 2, 2, 0, 1, 0])
    parts = [(np.flatnonzero(folds == fold), predictions[folds == fold]) for fold in (1, 2, 0)]
    assert np.array_equal(merge_folds(10, parts), predictions)


@pytest.mark.parametrize("second", [[1], [0, 1], [2, 3]])
def test_rows_that_are_missing_or_predicted_twice_are_refused(second):
    with pytest.raises(ValueError, match="each of the 3 rows once"):
        merge_folds(3, [(np.array([0]), np.zeros(1)), (np.array(second), np.zeros(len(second)))])


def test_cross_validated_metrics_are_the_same_numbers_with_their_mark():
    true, probabilities = np.array([0, 1, 1, 0]), np.array([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4], [0.7, 0.3]])
    marked = cross_validated_classification(true, probabilities)
    plain = evaluate_classification(true, probabilities)
    assert {name: metric.value for name, metric in marked.items()} == {name: m.value for name, m in plain.items()}
    assert {metric.to_json()["estimate"] for metric in marked.values()} == {"cross-validated"}
    assert "estimate" not in plain["accuracy"].to_json()
    assert cross_validated_regression(np.arange(4.0), np.arange(4.0))["spearman"].estimate == "cross-validated"
