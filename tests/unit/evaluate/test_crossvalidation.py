import numpy as np
import pytest

from onboard.evaluate.crossvalidation import cross_validated, merge_folds
from onboard.evaluate.evaluation import evaluate_classification, evaluate_regression


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
    marked = cross_validated(evaluate_classification(true, probabilities))
    plain = evaluate_classification(true, probabilities)
    assert {name: metric.value for name, metric in marked.items()} == {name: m.value for name, m in plain.items()}
    assert {metric.to_json()["estimate"] for metric in marked.values()} == {"cross-validated"}
    assert "estimate" not in plain["accuracy"].to_json()
    of_numbers = cross_validated(evaluate_regression(np.arange(4.0), np.arange(4.0)))
    assert of_numbers["spearman"].estimate == "cross-validated"
