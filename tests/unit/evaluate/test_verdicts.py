from dataclasses import replace

import numpy as np
import pytest

from onboard.contract.evaluations import PairedComparison
from onboard.evaluate.evaluation import evaluate_regression
from onboard.evaluate.intervals import Metric
from onboard.evaluate.verdicts import may_replace, weakness


def metric(value: float, low: float | None, high: float | None) -> Metric:
    return Metric(value, low, high, 30)


@pytest.mark.parametrize(("low", "weak"), [(0.49, True), (0.50, True), (0.51, False)])
def test_a_version_is_weak_unless_its_whole_interval_is_above_the_majority(low, weak):
    judged = weakness({"accuracy": metric(0.7, low, 0.8)}, {"accuracy": metric(0.5, 0.3, 0.7)}, "accuracy")
    assert (judged.weak, judged.judged) == (weak, True)
    assert ("not significantly better" in judged.reason) is weak


@pytest.mark.parametrize(("high", "weak"), [(0.69, False), (0.70, True)])
def test_losses_count_the_other_way_round(high, weak):
    judged = weakness({"log_loss": metric(0.5, 0.3, high)}, {"log_loss": metric(0.7, 0.6, 0.8)}, "log_loss")
    assert judged.weak is weak


def test_the_deciding_metric_decides():
    metrics = {"accuracy": metric(0.95, 0.9, 0.99), "mcc": metric(0.5, 0.2, 0.8)}
    trivial = {"accuracy": metric(0.94, 0.9, 0.98), "mcc": metric(0.0, None, None)}
    assert weakness(metrics, trivial, "accuracy").weak
    assert not weakness(metrics, trivial, "mcc").weak


def test_constant_predictions_are_weak():
    undefined = Metric(0.0, None, None, 9, "undefined, given as 0: all predictions are the same")
    judged = weakness({"spearman": undefined}, {"spearman": undefined}, "spearman")
    assert judged.weak
    assert "all predictions are the same" in judged.reason


@pytest.mark.parametrize(
    ("true", "predicted"), [([1.0, 1.0, 1.0], [1.0, 2.0, 1.5]), ([1.0], [3.0]), ([2.0, 2.0], [2.0, 2.0])]
)
def test_rows_of_one_label_cannot_tell_whether_a_version_is_weak(true, predicted):
    metrics = evaluate_regression(np.array(true), np.array(predicted))
    judged = weakness(metrics, metrics, "spearman")
    assert (judged.weak, judged.judged) == (False, False)
    assert "has no interval: undefined" in judged.reason


def test_small_numbers_are_shown_with_digits_that_say_something():
    judged = weakness({"mse": metric(2.1e-8, 1e-8, 4e-8)}, {"mse": metric(3.14e-8, 0, 1)}, "mse")
    assert "mse of 2.1e-08 (95%: 1e-08 to 4e-08, 30 rows) is not significantly better than the 3.1e-08" in judged.reason


@pytest.mark.parametrize("nothing", [None, {}])
def test_without_held_out_rows_nothing_is_judged_and_nothing_is_weak(nothing):
    judged = weakness(nothing, nothing, "accuracy")
    assert (judged.weak, judged.judged) == (False, False)
    assert "No rows were held out" in judged.reason


def comparison(verdict: str) -> PairedComparison:
    decided_by = "answers" if verdict in ("worse", "better") else None
    return PairedComparison(
        verdict=verdict, rows=30, newly_right=1, newly_wrong=7, p_value=0.07, loss="log_loss", increase=0.2, low=0.1,
        high=0.3, decided_by=decided_by,
    )  # fmt: skip


@pytest.mark.parametrize("weak", [False, True])
@pytest.mark.parametrize(
    ("verdict", "allowed"), [("worse", False), ("better", True), ("no significant difference", True)]
)
def test_with_shared_rows_only_a_significantly_worse_version_is_held_back(verdict, allowed, weak):
    permission = may_replace(comparison(verdict), weak=weak, predecessor_weak=False)
    assert permission.allowed is allowed
    assert "on 30 shared held-out rows" in permission.reason
    by = (
        "answers or by its log-loss"
        if "difference" in verdict
        else "answers on 30 shared held-out rows: 1 newly right,"
    )
    assert f"by its {by}" in permission.reason


@pytest.mark.parametrize("missing", [None, comparison("not enough evidence")])
@pytest.mark.parametrize(
    ("weak", "predecessor_weak", "allowed"),
    [(False, False, True), (False, True, True), (True, True, True), (True, False, False)],
)
def test_without_shared_rows_only_a_weak_version_after_a_good_one_is_held_back(
    missing, weak, predecessor_weak, allowed
):
    assert may_replace(missing, weak=weak, predecessor_weak=predecessor_weak).allowed is allowed


def test_a_single_row_judges_nothing():
    one = replace(metric(1.0, 0.2, 1.0), n=1)
    judged = weakness({"accuracy": one}, {"accuracy": one}, "accuracy")
    assert (judged.weak, judged.judged) == (False, False)
    assert "single held-out row" in judged.reason


def test_a_version_that_beats_the_majority_by_its_losses_alone_is_weak_by_macro_f1():
    metrics = {"log_loss": metric(0.3, 0.25, 0.35), "macro_f1": metric(0.47, 0.47, 0.49)}
    trivial = {"log_loss": metric(0.4, 0.3, 0.5), "macro_f1": metric(0.47, 0.45, 0.49)}
    judged = weakness(metrics, trivial, "log_loss")
    assert judged.weak
    assert "macro_f1 of 47.0%" in judged.reason


def test_a_version_that_beats_the_majority_by_both_is_told_by_what_decides():
    metrics = {"accuracy": metric(0.9, 0.8, 0.95), "macro_f1": metric(0.8, 0.7, 0.9)}
    trivial = {"accuracy": metric(0.6, 0.5, 0.7), "macro_f1": metric(0.4, 0.3, 0.5)}
    judged = weakness(metrics, trivial, "accuracy")
    assert not judged.weak
    assert "accuracy of 90.0%" in judged.reason
