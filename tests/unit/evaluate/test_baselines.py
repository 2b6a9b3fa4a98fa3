import time
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from onboard.data.splits import holdout
from onboard.domain.dataset import Dataset, Example
from onboard.evaluate import baselines
from onboard.evaluate.baselines import cross_validate_baselines, score_baselines
from onboard.evaluate.evaluation import evaluate_classification
from onboard.evaluate.verdicts import weakness

COLOURS = ["red", "green", "blue"]


def colour_rows(n: int, seed: int = 0, *, pair: bool = False) -> tuple[Example, ...]:
    random = np.random.default_rng(seed)
    rows = []
    for number in range(n):
        colour = COLOURS[number % 3]
        filler = " ".join(random.choice(["a", "box", "the", "door", "is", "very"], size=5))
        rows.append(Example(f"{filler} {colour}", "which colour" if pair else None, colour))
    return tuple(rows)


def colours(train: tuple[Example, ...], test: tuple[Example, ...] = ()) -> Dataset:
    return Dataset(kind="classification", labels=tuple(COLOURS), train=train, test=test)


def test_words_that_give_the_label_away_are_found_and_the_majority_is_a_third():
    dataset = colours(colour_rows(33), colour_rows(30, seed=1))
    baselines = score_baselines(dataset, dataset.test)
    assert list(baselines) == ["majority", "tfidf_logistic_regression"]
    assert baselines["majority"]["accuracy"].value == pytest.approx(1 / 3)
    assert baselines["tfidf_logistic_regression"]["accuracy"].value == 1.0
    assert set(baselines["majority"]) == set(baselines["tfidf_logistic_regression"])


def test_the_majority_is_the_commonest_label_of_training_and_held_out_rows_together():
    train = (*colour_rows(3), Example("blue again", None, "blue"))
    test = (*[Example("red", None, "red")] * 4, Example("blue", None, "blue"))
    assert score_baselines(colours(train), test)["majority"]["accuracy"].value == 0.8
    train = (*train, *[Example("blue", None, "blue")] * 4)
    assert score_baselines(colours(train), test)["majority"]["accuracy"].value == 0.2


@pytest.mark.parametrize(("labels", "rows"), [(150, 2), (30, 3), (2, 40)])
def test_what_a_hold_out_leaves_of_equal_labels_does_not_make_the_majority_wrong_on_purpose(labels: int, rows: int):
    names = tuple(f"label {number}" for number in range(labels))
    every = tuple(Example(f"{name}, row {row}", None, name) for name in names for row in range(rows))
    dataset = holdout(Dataset(kind="classification", labels=names, train=every), 0)
    baselines = score_baselines(dataset, dataset.validation)
    commonest = max(Counter(row.label for row in dataset.validation).values()) / len(dataset.validation)
    assert baselines["majority"]["accuracy"].value == pytest.approx(commonest)
    true = np.array(dataset.class_indices(dataset.validation))
    answered = np.where(np.arange(len(true)) == 0, true, (true + 1) % labels)
    one_right = evaluate_classification(true, np.eye(labels)[answered] * 0.9 + 0.1 / labels, "accuracy")
    assert weakness(one_right, baselines["majority"], "accuracy").weak


def test_true_and_one_are_different_labels():
    train = tuple(Example(text, None, label) for text, label in [("yes", True), ("one", 1), ("yes", True), ("one", 1)])
    dataset = Dataset(kind="classification", labels=(True, 1), train=train)
    baselines = score_baselines(dataset, train)
    assert baselines["tfidf_logistic_regression"]["accuracy"].value == 1.0
    assert baselines["majority"]["accuracy"].value == 0.5


def test_a_label_without_training_rows_has_a_finite_loss():
    train = tuple(row for row in colour_rows(30) if row.label != "green")
    baselines = score_baselines(colours(train), colour_rows(9))
    assert baselines["tfidf_logistic_regression"]["log_loss"].value < 3.0
    assert baselines["tfidf_logistic_regression"]["accuracy"].value == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    "train",
    [
        (Example("one label only", None, "red"), Example("again", None, "red")),
        (Example(" ", None, "red"), Example("\u2003", None, "blue")),
    ],
    ids=["one label", "blank texts"],
)
def test_where_nothing_can_be_learned_tfidf_is_the_majority(train):
    baselines = score_baselines(colours(train), colour_rows(6))
    assert baselines["tfidf_logistic_regression"]["accuracy"] == baselines["majority"]["accuracy"]


def test_overlap_makes_paraphrases_visible():
    random = np.random.default_rng(0)
    vocabulary = [f"word{number}" for number in range(400)]

    def row(same: bool) -> Example:
        words = list(random.choice(vocabulary, size=6))
        other = words[::-1] if same else list(random.choice(vocabulary, size=6))
        return Example(" ".join(words), " ".join(other), "same" if same else "other")

    train = tuple(row(number % 2 == 0) for number in range(64))
    test = tuple(row(number % 2 == 0) for number in range(40))
    dataset = Dataset(kind="classification", labels=("other", "same"), train=train)
    assert score_baselines(dataset, test)["tfidf_logistic_regression"]["accuracy"].value > 0.9


def test_regression_has_the_mean_and_a_ridge():
    def rows(n: int) -> tuple[Example, ...]:
        return tuple(Example("good " * (number % 7) + "film", None, float(number % 7)) for number in range(n))

    dataset = Dataset(kind="regression", labels=(), train=rows(70), low=0.0, high=6.0)
    baselines = score_baselines(dataset, rows(21))
    assert list(baselines) == ["mean", "tfidf_ridge"]
    assert baselines["mean"]["spearman"].value == 0.0
    assert baselines["tfidf_ridge"]["spearman"].value > 0.8
    assert baselines["tfidf_ridge"]["mse"].value < baselines["mean"]["mse"].value


def test_cross_validated_baselines_never_see_the_row_they_predict_and_say_so():
    train = tuple(Example(f"unique{number}", None, COLOURS[number % 2]) for number in range(40))
    dataset = Dataset(kind="classification", labels=tuple(COLOURS[:2]), train=train)
    index = np.asarray(dataset.class_indices(train))
    baselines = cross_validate_baselines(dataset, np.arange(len(index)) % 5)
    accuracy = baselines["tfidf_logistic_regression"]["accuracy"]
    assert accuracy.estimate == "cross-validated"
    assert accuracy.n == 40
    assert accuracy.value < 0.8  # 1.0 if a fold's own rows had been trained on


def test_cross_validated_regression_baselines_say_so():
    train = tuple(Example("good " * (number % 5) + "film", None, float(number % 5)) for number in range(40))
    dataset = Dataset(kind="regression", labels=(), train=train, low=0.0, high=4.0)
    baselines = cross_validate_baselines(dataset, np.arange(40) % 4)
    assert baselines["tfidf_ridge"]["spearman"].estimate == "cross-validated"
    assert baselines["tfidf_ridge"]["spearman"].value > 0.5


def test_the_commonest_label_and_the_mean_are_those_of_all_rows_whatever_the_folds():
    train = tuple(Example(f"unique{number}", None, COLOURS[number % 2]) for number in range(10))
    dataset = Dataset(kind="classification", labels=tuple(COLOURS[:2]), train=train)
    by_label = cross_validate_baselines(dataset, np.array([0, 1] * 5))
    assert by_label["majority"]["accuracy"].value == 0.5, "each fold's rest has the other label only"
    values = tuple(Example(f"unique{number}", None, float(number)) for number in range(12))
    baselines = cross_validate_baselines(
        Dataset(kind="regression", labels=(), train=values, low=0.0, high=11.0), np.arange(12) % 4
    )
    assert baselines["mean"]["spearman"].value == 0.0
    assert baselines["mean"]["spearman"].low is None


def test_rows_without_a_fold_are_trained_on_and_judge_nothing():
    train = (*colour_rows(24), Example("a sole word", None, COLOURS[0]))
    dataset = colours(train)
    folds = np.append(np.arange(24) % 4, -1)
    baselines = cross_validate_baselines(dataset, folds)
    assert {metric.n for metrics in baselines.values() for metric in metrics.values()} == {24}


def test_many_classes_with_long_texts_get_fewer_features(monkeypatch):
    sizes = []
    fit = LogisticRegression.fit

    def counted(self, features, *rest):
        sizes.append(features.shape[1])
        return fit(self, features, *rest)

    monkeypatch.setattr(LogisticRegression, "fit", counted)
    monkeypatch.setattr(baselines, "MOST_WEIGHTS", 60)
    score_baselines(colours(colour_rows(40)), colour_rows(30, seed=2))
    pairs = tuple(replace(row, text_b=row.text_a) for row in colour_rows(40))
    score_baselines(colours(pairs), pairs)
    classes = len({row.label for row in pairs})
    assert sizes[0] == 60 // classes
    assert sizes[1] == 60 // classes // 4 * 4 + 6


def test_baselines_repeat_themselves_and_draw_from_very_many_rows(monkeypatch):
    dataset = colours(colour_rows(120))
    everything = score_baselines(dataset, colour_rows(30, seed=2))
    monkeypatch.setattr(baselines, "MOST_ROWS", 10)
    drawn = score_baselines(dataset, colour_rows(30, seed=2), seed=1)
    assert drawn == score_baselines(dataset, colour_rows(30, seed=2), seed=1)
    assert drawn["tfidf_logistic_regression"] != everything["tfidf_logistic_regression"]
    assert drawn["tfidf_logistic_regression"]["accuracy"].note == "trained on 10 of the 120 training rows"
    assert drawn["majority"] == everything["majority"]


def test_no_rows_are_refused():
    with pytest.raises(ValueError, match="held-out rows, not 3 and 0"):
        score_baselines(colours(colour_rows(3)), [])


def test_thirty_two_pairs_take_less_than_a_few_seconds():
    dataset = colours(colour_rows(32, pair=True))
    score_baselines(dataset, dataset.train)  # imports
    started = time.process_time()
    score_baselines(dataset, colour_rows(200, seed=3, pair=True))
    assert time.process_time() - started < 3.0
