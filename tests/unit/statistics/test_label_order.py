"""Which texts are labeled next: uncertain ones that differ from each other, and scores that say so."""

from __future__ import annotations

import numpy as np

from onboard.statistics.label_order import ROUND, margin, next_to_label, scores_by_order, uncertainty


def some(count: int) -> tuple[np.ndarray, np.ndarray]:
    draw = np.random.default_rng(0)
    return draw.dirichlet(np.ones(3), size=count), draw.normal(size=(count, 5))


def test_uncertain_texts_that_differ_are_next_and_sure_ones_are_not() -> None:
    probabilities = np.array([[0.5, 0.5], [0.5, 0.5], [0.55, 0.45], [0.99, 0.01]])
    features = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]])
    assert next_to_label(probabilities, features, 2) == [0, 2]


def test_sure_texts_are_next_where_there_are_no_others() -> None:
    probabilities = np.array([[0.99, 0.01], [0.97, 0.03]])
    assert next_to_label(probabilities, np.eye(2), 2) == [1, 0]


def test_ascending_scores_are_the_order_in_which_texts_are_labeled() -> None:
    probabilities, features = some(60)
    scores = scores_by_order(probabilities, features)
    first = next_to_label(probabilities, features, ROUND)
    assert np.argsort(scores, kind="stable")[:ROUND].tolist() == first
    assert ((scores >= 0) & (scores <= 1)).all()
    rest = np.setdiff1d(np.arange(60), first)
    assert (np.diff(scores[rest][np.argsort(-uncertainty(probabilities[rest]))]) >= 0).all()


def test_a_few_texts_have_the_certainty_of_their_answers_as_score() -> None:
    probabilities, features = some(ROUND)
    np.testing.assert_allclose(scores_by_order(probabilities, features), 1 - uncertainty(probabilities))


def test_the_margin_is_how_far_the_best_answer_is_ahead() -> None:
    np.testing.assert_allclose(margin(np.array([[0.5, 0.2, 0.3], [0.1, 0.8, 0.1]])), [0.2, 0.7])
    assert margin(np.ones((2, 1))).tolist() == [1.0, 1.0]
