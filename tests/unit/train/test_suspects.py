"""Rows that look mislabelled to embeddings that were trained without them."""

from __future__ import annotations

import numpy as np

from onboard.data.label_errors import Doubt
from onboard.domain.dataset import Dataset, Example
from onboard.train.suspects import MOST, suspected_rows, warning_of

COUNT = 40
TARGETS = np.eye(2)[[0, 1] * (COUNT // 2)]


def estimate(sure: float, flipped: dict[int, float]) -> np.ndarray:
    """Log-probabilities that are as sure of the given label, but for the flipped rows: so sure of the other one."""
    right = np.full(COUNT, sure)
    for row, other in flipped.items():
        right[row] = 1.0 - other
    return np.log(np.where(TARGETS > 0, right[:, None], 1.0 - right[:, None]))


def suspected(scores: np.ndarray, targets: np.ndarray) -> list[Doubt]:
    """Of rows that were all predicted without themselves."""
    return suspected_rows(np.arange(len(targets)), scores, targets)


def test_rows_that_are_confidently_contradicted_are_told_the_clearest_first() -> None:
    suspects = suspected(estimate(0.9, {3: 0.94, 8: 0.97, 11: 0.88}), TARGETS)
    rows = [(suspect.row, suspect.seems) for suspect in suspects]
    assert rows == [(8, 1), (3, 0)]  # 0.88 against 0.12 is not clear enough
    assert suspects[0].probability > 0.96
    assert suspects[0].given_probability < 0.04


def test_a_model_that_knows_little_doubts_nobody() -> None:
    wrong = dict.fromkeys(range(12), 0.95)
    assert suspected(estimate(0.9, wrong), TARGETS) == []


def test_ten_are_told_at_most() -> None:
    many, targets = (
        np.vstack([estimate(0.9, {}), estimate(0.9, dict.fromkeys(range(14), 0.95))] * 2),
        np.vstack([TARGETS] * 4),
    )
    assert len(suspected(many[:120], targets[:120])) == MOST


def test_a_labels_only_row_is_not_doubted_as_nothing_was_taught_of_it() -> None:
    targets = np.vstack([np.hstack([TARGETS, np.zeros((COUNT, 1))]), [[0, 0, 1], [0, 0, 1]]])
    sure = np.log(np.where(targets > 0, 0.98, 0.01))
    sure[-2:] = np.log([0.98, 0.01, 0.01])  # their label is not believed
    assert [suspect.row for suspect in suspected(sure, targets)] == [COUNT, COUNT + 1]
    assert suspected(sure[:-1], targets[:-1]) == []


def test_right_labels_are_not_doubted() -> None:
    assert suspected(estimate(0.95, {}), TARGETS) == []


def test_a_label_that_the_model_is_usually_surer_of_is_not_likelier() -> None:
    targets = np.eye(3)[[0, 1, 2] * 20]
    scores = np.where(targets > 0, 0.98, 0.01)
    scores[0] = [0.02, 0.94, 0.04]
    assert [doubt.row for doubt in suspected(np.log(scores), targets)] == []  # 0.94 is little for label 1
    scores[0] = [0.005, 0.985, 0.01]
    assert [(doubt.row, doubt.seems) for doubt in suspected(np.log(scores), targets)] == [(0, 1)]


def test_the_warning_names_rows_and_labels() -> None:
    rows = tuple(Example(f"text {index:02d}", None, ("no", "yes")[index % 2]) for index in range(COUNT))
    dataset = Dataset("classification", ("no", "yes"), rows)
    warning = warning_of(suspected(estimate(0.9, {3: 0.94, 8: 0.97}), TARGETS), dataset)
    assert warning.count == 2
    assert warning.message == (
        "2 training rows look mislabeled to models trained without them: "
        "“text 08” is labeled no; yes looks more likely."
    )
    assert warning.examples[1] == {"text": "text 03", "label": "yes", "likelier": "no"}


def test_every_suspect_is_named() -> None:
    rows = tuple(Example(f"text {index:02d}", None, ("no", "yes")[index % 2]) for index in range(COUNT))
    suspects = suspected(estimate(0.9, dict.fromkeys(range(8), 0.95)), TARGETS)
    warning = warning_of(suspects, Dataset("classification", ("no", "yes"), rows))
    assert warning.count == len(warning.examples) == 8


def test_both_texts_of_a_pair_are_shown() -> None:
    rows = tuple(Example(f"premise {index} {'x' * 60}", f"hypothesis {index}", "no") for index in range(COUNT))
    dataset = Dataset("classification", ("no", "yes"), rows)
    warning = warning_of(suspected(estimate(0.9, {8: 0.97}), TARGETS), dataset)
    shown = f"premise 8 {'x' * 29}… | hypothesis 8"
    assert f"“{shown}” is labeled no; yes looks more likely." in warning.message
    assert warning.examples[0]["text"] == shown
