import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from sklearn import metrics as reference

from onboard.evaluate import metrics

CLASSES = 4
index_pairs = st.lists(st.tuples(st.integers(0, CLASSES - 1), st.integers(0, CLASSES - 1)), min_size=1, max_size=40)


def split(pairs: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    array = np.asarray(pairs, dtype=np.int64)
    return array[:, 0], array[:, 1]


def margins(true: np.ndarray, predicted: np.ndarray, classes: int = CLASSES) -> metrics.Margins:
    return metrics.Margins.of(metrics.confusion(true, predicted, classes))


def log_loss(true: np.ndarray, probabilities: np.ndarray) -> float:
    return float(metrics.row_log_loss(true, probabilities).mean())


@given(index_pairs)
def test_accuracy_macro_f1_and_confusion_agree_with_scikit_learn(pairs):
    true, predicted = split(pairs)
    expected = reference.confusion_matrix(true, predicted, labels=range(CLASSES))

    assert np.array_equal(metrics.confusion(true, predicted, CLASSES), expected)
    assert margins(true, predicted).accuracy() == pytest.approx(reference.accuracy_score(true, predicted))
    assert margins(true, predicted, CLASSES).macro_f1() == pytest.approx(
        reference.f1_score(true, predicted, average="macro", zero_division=0.0)
    )


@given(index_pairs.filter(lambda pairs: len({a for a, _ in pairs}) > 1 and len({b for _, b in pairs}) > 1))
def test_mcc_agrees_with_scikit_learn(pairs):
    true, predicted = split(pairs)
    assert margins(true, predicted, CLASSES).mcc() == pytest.approx(reference.matthews_corrcoef(true, predicted))


def test_log_loss_agrees_with_scikit_learn():
    random = np.random.default_rng(0)
    probabilities = random.dirichlet(np.ones(3), size=50)
    true = random.integers(0, 3, size=50)
    assert log_loss(true, probabilities) == pytest.approx(reference.log_loss(true, probabilities, labels=[0, 1, 2]))


def test_a_probability_of_zero_costs_a_finite_loss():
    assert log_loss(np.array([0]), np.array([[0.0, 1.0]])) == pytest.approx(-np.log(1e-12))


@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e200])
def test_correlations_agree_with_scipy_at_any_scale(scale):
    random = np.random.default_rng(1)
    a = np.round(random.normal(size=60), 1)  # rounded, so that there are ties
    b = a + random.normal(size=60)
    assert metrics.pearson(a * scale, b) == pytest.approx(stats.pearsonr(a, b).statistic)
    assert metrics.spearman(a, b * scale) == pytest.approx(stats.spearmanr(a, b).statistic)


def test_constant_predictions_correlate_with_nothing_and_say_so():
    true, constant = np.array([1.0, 2.0, 3.0]), np.full(3, 0.1 + 0.2)
    assert metrics.pearson(true, constant) == 0.0
    assert metrics.spearman(true, constant) == 0.0
    assert margins(np.array([0, 1, 1]), np.array([1, 1, 1]), 2).mcc() == 0.0
    assert "all predictions are the same" in metrics.why_undefined(true, constant)


def test_one_true_class_leaves_mcc_undefined_and_says_so():
    true, predicted = np.array([1, 1, 1]), np.array([0, 1, 1])
    assert margins(true, predicted, 2).mcc() == 0.0
    assert "same true label" in metrics.why_undefined(true, predicted)
    assert metrics.why_undefined(predicted, np.array([1, 0, 1])) == ""


def test_classes_that_never_occur_do_not_count_in_macro_f1():
    true = np.array([0, 1, 0, 1])
    assert margins(true, true, 150).macro_f1() == 1.0
