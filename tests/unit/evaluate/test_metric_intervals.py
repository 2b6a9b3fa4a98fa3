import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from onboard.evaluate.intervals import Metric, bootstrap_confusion
from onboard.evaluate.metrics import Margins
from onboard.statistics.correlations import pearson_interval, spearman_interval
from onboard.statistics.proportions import wilson
from onboard.statistics.student import mean_interval


@given(st.integers(1, 500).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_agrees_with_scipy_and_holds_the_share(right_of_n):
    right, n = right_of_n
    low, high = wilson(right, n)
    expected = stats.binomtest(right, n).proportion_ci(method="wilson")
    assert (low, high) == pytest.approx((expected.low, expected.high), abs=1e-12)
    assert 0.0 <= low <= right / n <= high <= 1.0


def test_fisher_interval_of_pearson_agrees_with_scipy():
    random = np.random.default_rng(0)
    a = random.normal(size=40)
    b = a + random.normal(size=40)
    correlation = stats.pearsonr(a, b)
    expected = correlation.confidence_interval()
    assert pearson_interval(correlation.statistic, 40) == pytest.approx((expected.low, expected.high))


@pytest.mark.parametrize("interval", [pearson_interval, spearman_interval])
def test_three_rows_say_nothing_about_a_correlation(interval):
    assert interval(0.9, 3) == (-1.0, 1.0)


def test_five_rows_in_perfect_order_are_not_a_certain_correlation():
    low, high = spearman_interval(1.0, 5)
    assert low < 0.5
    assert high == 1.0


def test_student_interval_of_a_mean_agrees_with_scipy():
    rows = np.random.default_rng(0).exponential(size=25)
    expected = stats.t.interval(0.95, 24, loc=rows.mean(), scale=stats.sem(rows))
    assert mean_interval(rows) == pytest.approx(expected)
    assert mean_interval(rows[:1]) is None


@pytest.mark.parametrize("statistic", [Margins.macro_f1, Margins.mcc])
@given(
    st.lists(st.lists(st.integers(0, 6), min_size=3, max_size=3), min_size=3, max_size=3).filter(lambda m: np.sum(m))
)
def test_a_bootstrap_interval_holds_its_value_and_repeats_itself(statistic, rows):
    matrix = np.asarray(rows, dtype=np.int64)
    low, high = bootstrap_confusion(matrix, statistic, draws=100)
    assert low <= statistic(Margins.of(matrix)) <= high
    assert (low, high) == bootstrap_confusion(matrix, statistic, draws=100)


def test_thirty_right_answers_do_not_make_macro_f1_certain():
    low, high = bootstrap_confusion(np.diag([15, 15]), Margins.macro_f1)
    assert 0.75 < low < 0.97
    assert high == 1.0


def test_one_row_per_class_still_has_a_wide_interval():
    low, high = bootstrap_confusion(np.diag([1, 1, 1, 0]) + np.diag([0, 0, 1], k=1), Margins.macro_f1)
    assert high - low > 0.4


@pytest.mark.parametrize("statistic", [Margins.macro_f1, Margins.mcc])
def test_labels_that_occur_nowhere_have_no_part_in_an_interval(statistic):
    seen, among = np.array([[17, 3], [2, 14]]), np.zeros((8, 8), dtype=np.int64)
    among[np.ix_([2, 5], [2, 5])] = seen
    assert bootstrap_confusion(among, statistic) == bootstrap_confusion(seen, statistic)


def test_rows_of_many_classes_are_drawn_one_by_one_from_the_same_chances():
    random, rows = np.random.default_rng(3), np.arange(40)
    matrix = np.diag(np.full(40, 2))
    matrix[rows[:15], (rows[:15] + random.integers(1, 40, 15)) % 40] += 1  # three rows of some classes, of 40
    low, high = bootstrap_confusion(matrix, Margins.accuracy)
    right, n = int(np.trace(matrix)), int(matrix.sum())
    assert (low, high) == pytest.approx(wilson(right, n), abs=0.03)


def test_a_single_class_is_certain():
    assert bootstrap_confusion(np.array([[7]]), Margins.macro_f1) == (1.0, 1.0)


@pytest.mark.parametrize(
    ("shares", "accuracy", "n"),
    [([0.5, 0.5], 0.8, 30), ([0.5, 0.5], 0.97, 30), ([1 / 6] * 6, 0.7, 30), ([1 / 6] * 6, 0.9, 12)],
)
def test_macro_f1_intervals_cover_the_truth_about_as_often_as_they_claim(shares, accuracy, n):
    random = np.random.default_rng(0)
    classes = len(shares)
    chances = np.full((classes, classes), (1 - accuracy) / (classes - 1))
    np.fill_diagonal(chances, accuracy)  # balanced classes, even errors: macro-F1 of the population is the accuracy
    covered = 0
    for _ in range(200):
        true = random.multinomial(n, shares)
        matrix = np.stack([random.multinomial(true[k], chances[k]) for k in range(classes)])
        low, high = bootstrap_confusion(matrix, Margins.macro_f1, draws=200)
        covered += low <= accuracy <= high
    assert covered / 200 >= 0.9


def test_a_metric_is_json_with_extra_keys_only_where_there_is_something_to_say():
    assert Metric(0.5, 0.3, 0.7, 20).to_json() == {"value": 0.5, "low": 0.3, "high": 0.7, "n": 20}
    thirds = {"value": 0.666667, "low": 0.333333, "high": None, "n": 3}  # six digits: no version is larger for more
    assert Metric(2 / 3, 1 / 3, None, 3).to_json() == thirds
    noted = Metric(0.0, None, None, 1, "undefined", "cross-validated").to_json()
    assert json.loads(json.dumps(noted)) == {
        "value": 0.0,
        "low": None,
        "high": None,
        "n": 1,
        "note": "undefined",
        "estimate": "cross-validated",
    }
