import numpy as np

from onboard.domain.label_scores import LabelScore, label_scores, neglect_sentence, neglected
from onboard.evaluate.evaluation import evaluate_classification


def test_macro_f1_is_told_with_the_labels_whose_mean_it_is() -> None:
    probabilities = np.eye(3)[[0, 0, 0, 1, 0, 2]]
    metrics = evaluate_classification(np.array([0, 0, 0, 1, 1, 2]), probabilities, labels=("ham", "spam", 3))
    document = metrics["macro_f1"].to_json()
    assert document["labels"][1] == {
        "label": "spam", "rows": 2, "answers": 1, "right": 1, "precision": 1.0, "recall": 0.5, "f1": 0.666667,
    }  # fmt: skip
    assert metrics["macro_f1"].value == np.mean([score.f1 for score in metrics["macro_f1"].labels])
    assert label_scores({"macro_f1": document})[2] == LabelScore(3, 1, 1, 1)
    assert "labels" not in metrics["accuracy"].to_json()


def test_what_was_never_asked_or_answered_has_no_share() -> None:
    assert LabelScore("spam", 0, 2, 0).recall is None
    assert LabelScore("spam", 2, 0, 0).precision is None
    assert LabelScore("spam", 2, 0, 0).f1 == 0.0
    assert LabelScore("spam", 0, 0, 0).f1 is None


def test_a_constant_answer_is_said_in_the_first_place() -> None:
    scores = [LabelScore("ham", 87, 100, 87), LabelScore("spam", 13, 0, 0)]
    assert neglect_sentence(scores) == "It gives every text the same answer, ham, and never answers spam (13 rows)."


def test_labels_that_hardly_get_an_answer_are_named_after_those_that_never_do() -> None:
    scores = [LabelScore("a", 40, 56, 36), LabelScore("b", 16, 4, 4), LabelScore("c", 4, 0, 0)]
    assert [score.label for score in neglected(scores)] == ["c", "b"]
    assert neglect_sentence(scores) == "It never answers c (4 rows) and hardly ever answers b (4 of 16 rows)."


def test_a_label_of_one_or_two_rows_and_one_that_gets_its_answers_say_nothing() -> None:
    assert neglect_sentence([LabelScore("a", 9, 10, 8), LabelScore("b", 2, 0, 0), LabelScore("c", 9, 10, 8)]) == ""


def test_of_many_labels_a_few_are_named() -> None:
    scores = [LabelScore(name, 3, 0, 0) for name in "abcd"] + [LabelScore("e", 3, 12, 3), LabelScore("f", 3, 3, 3)]
    assert neglect_sentence(scores) == "It never answers 4 labels, among them a (3 rows), b (3 rows), c (3 rows)."


def test_metrics_of_earlier_versions_say_nothing_of_labels() -> None:
    assert label_scores(None) == label_scores({"macro_f1": {"value": 0.5}}) == label_scores({"macro_f1": None}) == []
