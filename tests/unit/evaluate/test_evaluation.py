import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.refusals import refused

from onboard.errors import JobFailedError
from onboard.evaluate.evaluation import evaluate_classification, evaluate_regression, headline_metric


def certain(predicted: list[int], classes: int) -> np.ndarray:
    return np.eye(classes)[predicted] * 0.9 + 0.1 / classes


def test_two_classes_get_accuracy_macro_f1_mcc_and_log_loss():
    metrics = evaluate_classification(np.array([0, 1, 1, 0]), certain([0, 1, 0, 0], 2))
    assert list(metrics) == ["accuracy", "macro_f1", "mcc", "log_loss", "calibration_error"]
    assert metrics["accuracy"].value == 0.75
    assert {metric.n for metric in metrics.values()} == {4}
    assert (metrics["calibration_error"].low, metrics.pop("calibration_error").high) == (None, None)
    assert all(metric.low <= metric.value <= metric.high for metric in metrics.values())


def test_three_classes_get_mcc_only_when_asked():
    true, probabilities = np.array([0, 1, 2]), certain([0, 1, 1], 3)
    assert "mcc" not in evaluate_classification(true, probabilities)
    assert "mcc" in evaluate_classification(true, probabilities, metric="mcc")


@pytest.mark.parametrize("kind", ["classification", "regression"])
def test_an_unknown_metric_is_refused_with_the_ones_there_are(kind):
    with refused("unknown-metric", metric="f1") as caught:
        headline_metric(kind, "f1")
    assert headline_metric(kind) in caught.value.remedy


def test_equal_probabilities_predict_the_first_label():
    assert evaluate_classification(np.array([0, 1]), np.full((2, 2), 0.5))["accuracy"].value == 0.5


def test_diverged_predictions_fail_the_job_and_name_a_remedy():
    probabilities = certain([0, 1], 2)
    probabilities[1] = np.nan
    with refused("predictions-not-finite"):
        evaluate_classification(np.array([0, 1]), probabilities)
    with pytest.raises(JobFailedError):
        evaluate_regression(np.array([0.0, 1.0]), np.array([np.inf, 1.0]))


@pytest.mark.parametrize(
    ("true", "probabilities"),
    [
        ([], np.zeros((0, 2))),
        ([0], certain([0, 1], 2)),
        ([2], certain([0], 2)),
        ([0], np.array([[0.9, 0.9]])),
        ([0], np.array([0.5])),
    ],
)
def test_arrays_that_do_not_fit_are_refused(true, probabilities):
    with pytest.raises(ValueError, match=r"probabilities|true classes"):
        evaluate_classification(np.asarray(true, dtype=np.int64), probabilities)


def test_regression_gets_both_correlations_and_the_squared_error():
    true = np.arange(10.0)
    metrics = evaluate_regression(true, true**3)
    assert metrics["spearman"].value == pytest.approx(1.0)
    assert 0.8 < metrics["pearson"].value < 1.0
    assert metrics["mse"].value > 0
    assert metrics["pearson"].low < metrics["pearson"].value < metrics["pearson"].high


def test_constant_predictions_of_a_regression_are_zero_with_a_note_and_no_interval():
    metrics = evaluate_regression(np.arange(5.0), np.full(5, 2.0))
    assert metrics["spearman"].value == metrics["pearson"].value == 0.0
    assert metrics["spearman"].low is None
    assert "all predictions are the same" in metrics["pearson"].note


@given(
    st.integers(1, 4).flatmap(
        lambda k: st.lists(st.tuples(st.integers(0, k - 1), st.integers(0, k - 1)), min_size=1, max_size=12).map(
            lambda rows: (k, rows)
        )
    )
)
def test_whatever_is_evaluated_is_valid_json_without_nan(case):
    classes, rows = case
    true, predicted = zip(*rows, strict=True)
    metrics = evaluate_classification(np.asarray(true), certain(list(predicted), classes), metric="mcc")
    json.dumps({name: metric.to_json() for name, metric in metrics.items()}, allow_nan=False)
    numbers = evaluate_regression(np.asarray(true, dtype=float), np.asarray(predicted, dtype=float))
    json.dumps({name: metric.to_json() for name, metric in numbers.items()}, allow_nan=False)
