"""Constants added to the labels' log-probabilities, as the measurement of recipes has them."""

from __future__ import annotations

import numpy as np
import pytest

from bench.calibration import calibrated, cross_calibrated, fit_offsets
from onboard.train.crossvalidation import FOLDS

RNG = np.random.default_rng(0)
SCORES = np.log(RNG.dirichlet([1.0, 1.0, 1.0], 40)).astype(np.float32)
TARGETS = np.eye(3, dtype=np.float32)[RNG.integers(0, 3, 40)]


def loss(offsets: np.ndarray, penalty: float) -> float:
    scores = calibrated(SCORES.astype(np.float64), offsets)
    return float(-(TARGETS * scores).sum() + penalty * (offsets**2).sum())


def test_without_constants_nothing_changes() -> None:
    assert calibrated(SCORES, None) is SCORES


def test_what_is_calibrated_sums_to_one_and_only_differences_count() -> None:
    offsets = np.array([1.0, 0.0, -2.0], dtype=np.float32)
    found = calibrated(SCORES, offsets)
    assert found.dtype == np.float32
    np.testing.assert_allclose(np.exp(found).sum(1), 1.0, atol=1e-5)
    np.testing.assert_allclose(found[:, 0] - found[:, 2], SCORES[:, 0] - SCORES[:, 2] + 3.0, atol=1e-4)
    np.testing.assert_allclose(calibrated(SCORES, offsets + 5), found, atol=1e-4)
    np.testing.assert_allclose(calibrated(SCORES[0], offsets), found[0], atol=1e-6)


@pytest.mark.parametrize("penalty", [0.01, 1.0, 100.0])
def test_the_fit_is_the_least_of_its_loss(penalty: float) -> None:
    best = fit_offsets(SCORES, TARGETS, penalty)
    assert best.dtype == np.float32
    for _ in range(20):
        other = best + RNG.normal(0, 0.05, 3).astype(np.float32)
        assert loss(best, penalty) <= loss(other, penalty) + 1e-6


def test_a_model_that_always_says_the_same_is_put_right() -> None:
    scores = SCORES + np.array([12.0, 0.0, 0.0], dtype=np.float32)
    scores -= np.logaddexp.reduce(scores, axis=1, keepdims=True)
    assert (scores.argmax(1) == 0).all()
    found = calibrated(scores, fit_offsets(scores, TARGETS, 0.1))
    np.testing.assert_allclose(np.exp(found).mean(0), TARGETS.mean(0), atol=0.05)


def test_few_rows_move_the_constants_little() -> None:
    few, many = (fit_offsets(np.tile(SCORES, (n, 1)), np.tile(TARGETS, (n, 1)), 5.0) for n in (1, 20))
    assert np.abs(few).max() < np.abs(many).max()


def test_impossible_scores_do_not_break_the_fit() -> None:
    scores = np.log(np.array([[1 - 2e-30, 1e-30, 1e-30]] * 8))
    assert np.isfinite(fit_offsets(scores, np.eye(3)[[1] * 8], 1e-6)).all()


def test_the_constants_of_a_row_s_estimate_were_fitted_without_its_fold() -> None:
    rng = np.random.default_rng(0)
    scores = np.log(rng.dirichlet([1.0, 1.0, 1.0], 12)).astype(np.float32)
    targets, fold = np.eye(3, dtype=np.float32)[rng.integers(0, 3, 12)], np.arange(12) % FOLDS
    before = cross_calibrated(scores, targets, fold, 0.5)
    changed = targets.copy()
    changed[fold == 1] = np.roll(targets[fold == 1], 1, axis=1)
    after = cross_calibrated(scores, changed, fold, 0.5)
    np.testing.assert_array_equal(after[fold == 1], before[fold == 1])
    assert (after[fold != 1] != before[fold != 1]).all()
    np.testing.assert_array_equal(cross_calibrated(scores, targets, fold, None), scores)
