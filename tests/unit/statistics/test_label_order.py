"""Which texts are labeled next: how far the best answer is ahead, and how unlike texts are."""

from __future__ import annotations

import numpy as np

from onboard.statistics.label_order import farthest_first, margin, margin_of_sets


def test_the_margin_is_how_far_the_best_answer_is_ahead() -> None:
    np.testing.assert_allclose(margin(np.array([[0.5, 0.2, 0.3], [0.1, 0.8, 0.1]])), [0.2, 0.7])
    assert margin(np.ones((2, 1))).tolist() == [1.0, 1.0]


def test_the_margin_of_a_set_is_that_of_its_least_certain_label() -> None:
    np.testing.assert_allclose(margin_of_sets(np.array([[0.5, 0.9], [0.8, 0.1], [1.0, 0.0]])), [0.0, 0.6, 1.0])


def test_texts_unlike_those_that_were_taken_before_come_first() -> None:
    features = np.array([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [1.0, 0.0]])
    assert farthest_first(features, 3) == [0, 2, 1]  # the last one says what the first one says
    assert farthest_first(features, 2, np.array([[0.0, 1.0]])) == [0, 1]
