"""The temperature that a candidate is forgiven its over-confidence with."""

from __future__ import annotations

import numpy as np
import pytest

from onboard.probe.evaluator import at_best_temperature


def log_softmax(scores: np.ndarray) -> np.ndarray:
    normalised: np.ndarray = scores - np.logaddexp.reduce(scores, axis=1, keepdims=True)
    return normalised


def test_an_over_confident_candidate_that_knows_something_beats_one_that_knows_nothing() -> None:
    targets = np.eye(2)[[0] * 10]
    knows = log_softmax(np.array([[20.0, 0.0]] * 8 + [[0.0, 20.0]] * 2))  # right in eight of ten, always sure
    nothing = np.full((10, 2), np.log(0.5))
    assert -(targets * knows).sum(1).mean() > np.log(2)
    assert at_best_temperature(knows, targets).mean() < at_best_temperature(nothing, targets).mean()


def test_the_loss_is_never_above_the_raw_one_and_the_temperature_never_sharpens() -> None:
    rng = np.random.default_rng(0)
    for scale in (0.1, 1.0, 6.0):
        targets = np.eye(3)[rng.integers(0, 3, 30)]
        scores = log_softmax(rng.normal(size=(30, 3)) * scale)
        assert at_best_temperature(scores, targets).mean() <= -(targets * scores).sum(1).mean() + 1e-12
    shy = log_softmax(np.array([[0.5, 0.0]] * 10))  # right but never sure: sharpening is not allowed
    targets = np.eye(2)[[0] * 10]
    np.testing.assert_allclose(at_best_temperature(shy, targets), -(targets * shy).sum(1))


def test_a_uniform_candidate_has_the_entropy_of_the_label_set() -> None:
    scores = np.full((5, 4), np.log(0.25))
    np.testing.assert_allclose(at_best_temperature(scores, np.eye(4)[[0, 1, 2, 3, 0]]), np.log(4))


def test_soft_targets_are_cross_entropies() -> None:
    scores = log_softmax(np.array([[1.0, 0.0, -1.0]]))
    target = np.array([[0.25, 0.75, 0.0]])
    assert at_best_temperature(scores, target) == pytest.approx(
        min(
            -(target * log_softmax(scores / temperature)).sum()
            for temperature in (1.0, 1.25, 1.6, 2.0, 2.5, 3.2, 4.0, 5.0, 6.3, 8.0, 10.0, 16.0)
        )
    )
