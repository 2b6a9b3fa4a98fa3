import json

import numpy as np
import pytest
from scipy import stats

from onboard.evaluate.paired import compare_classification, compare_regression
from onboard.statistics.proportions import mcnemar


def answers(right: np.ndarray, confidence: float = 0.8) -> np.ndarray:
    """Probabilities of two classes; the true one is class 0."""
    chance = np.where(right, confidence, 1 - confidence)
    return np.stack([chance, 1 - chance], axis=1)


def rows(n: int) -> np.ndarray:
    return np.zeros(n, dtype=np.int64)


@pytest.mark.parametrize(("fewer", "more"), [(0, 6), (3, 9), (5, 5), (0, 1)])
def test_mcnemar_is_the_exact_binomial_test(fewer, more):
    expected = stats.binomtest(more, fewer + more, 0.5, alternative="greater").pvalue
    assert mcnemar(fewer, more) == pytest.approx(expected)
    assert mcnemar(0, 0) == 1.0


def test_six_answers_lost_and_none_won_are_significantly_worse_and_five_are_not():
    before = answers(np.ones(12, dtype=bool))
    worse = compare_classification(rows(12), before, answers(np.arange(12) >= 6))
    assert (worse.verdict, worse.newly_wrong, worse.newly_right) == ("worse", 6, 0)
    assert worse.p_value == pytest.approx(2 * 0.5**6)
    assert worse.sentence("It", "v1", "rows") == (
        "It is significantly worse than v1 by its answers on 12 rows: 0 newly right, 6 newly wrong (McNemar p = 0.031)."
    )
    assert compare_classification(rows(12), before, answers(np.arange(12) >= 5)).verdict == "no significant difference"


def test_what_is_worse_one_way_is_better_the_other_way():
    a, b = answers(np.ones(30, dtype=bool)), answers(np.arange(30) >= 9)
    assert compare_classification(rows(30), a, b).verdict == "worse"
    assert compare_classification(rows(30), b, a).verdict == "better"


def test_a_loss_that_rises_everywhere_is_worse_though_no_answer_changed():
    right = np.arange(40) > 1
    comparison = compare_classification(rows(40), answers(right, 0.9), answers(right, 0.6))
    assert comparison.newly_wrong == comparison.newly_right == 0
    assert (comparison.verdict, comparison.decided_by) == ("worse", "log_loss")
    assert comparison.low > 0
    assert comparison.sentence("It", "v1", "shared rows").endswith(", though no answer changed.")
    assert comparison.sentence("It", "v1", "shared rows").startswith(
        "It is significantly worse than v1 by its log-loss on 40 shared rows: +"
    )


def test_losses_do_not_overrule_more_right_answers():
    before = answers(np.arange(40) < 20, 0.6)
    after = answers(np.arange(40) < 23, 0.999)  # three more right ones, and the wrong ones are very sure of themselves
    comparison = compare_classification(rows(40), before, after)
    assert comparison.low > 0
    assert comparison.verdict == "no significant difference"


def test_the_same_predictions_do_not_differ():
    same = answers(np.arange(50) % 3 > 0)
    comparison = compare_classification(rows(50), same, same)
    assert comparison.verdict == "no significant difference"
    assert (comparison.increase, comparison.low, comparison.high, comparison.p_value) == (0.0, 0.0, 0.0, 1.0)
    assert comparison.decided_by is None
    said = "It is not significantly better or worse than v1 by its answers or by its log-loss on 50 rows."
    assert comparison.sentence("It", "v1", "rows") == said


@pytest.mark.parametrize("n", [0, 5])
def test_a_handful_of_rows_is_no_evidence(n):
    comparison = compare_classification(rows(n), answers(np.ones(n, dtype=bool)), answers(np.zeros(n, dtype=bool)))
    assert comparison.verdict == "not enough evidence"
    assert comparison.sentence("It", "v1", "rows") == f"There is not enough evidence on {n} rows."
    assert json.loads(json.dumps(comparison.to_json(), allow_nan=False))["rows"] == n


def test_the_wolf_is_cried_in_at_most_one_of_twenty_equal_pairs():
    random = np.random.default_rng(0)
    wolves = 0
    for _ in range(200):
        a, b = (answers(random.random(30) < 0.7, 0.75) for _ in range(2))
        wolves += compare_classification(rows(30), a, b).verdict == "worse"
    assert wolves / 200 <= 0.05


def test_regression_is_compared_by_squared_error():
    random = np.random.default_rng(0)
    true = random.normal(size=60)
    near, far = true + random.normal(size=60) * 0.1, true + random.normal(size=60)
    comparison = compare_regression(true, near, far)
    assert (comparison.verdict, comparison.loss, comparison.p_value) == ("worse", "squared_error", None)
    assert comparison.low <= comparison.increase <= comparison.high
    assert "worse than v1 by its squared error on 60 rows: +" in comparison.sentence("It", "v1", "rows")
    assert compare_regression(true, far, near).verdict == "better"
    assert compare_regression(true[:19], near[:19], far[:19]).verdict == "not enough evidence"
    assert compare_regression(true[:0], near[:0], far[:0]).verdict == "not enough evidence"


def test_a_comparison_of_many_rows_repeats_itself():
    random = np.random.default_rng(0)
    n = 3000
    a, b = answers(random.random(n) < 0.7), answers(random.random(n) < 0.7)
    first = compare_classification(rows(n), a, b)
    assert first == compare_classification(rows(n), a, b)
    spread = np.std(np.log(a[:, 0]) - np.log(b[:, 0])) / np.sqrt(n)
    assert (first.high - first.low) / (2 * 1.96 * spread) == pytest.approx(1.0, abs=0.01)


def test_predictions_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="for 3 rows"):
        compare_classification(rows(3), np.zeros((3, 2)), np.zeros((2, 2)))
    with pytest.raises(ValueError, match="for 3 rows"):
        compare_regression(np.zeros(3), np.zeros(3), np.zeros(2))
