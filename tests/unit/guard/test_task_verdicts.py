"""From answers before and after a change to a verdict."""

from __future__ import annotations

import json

import numpy as np
import pytest

from onboard.contract.guard import GuardedTask
from onboard.guard.settings import GuardSettings
from onboard.guard.verdicts import Seen, judge

SETTINGS = GuardSettings(spread=0.15)
NO_GROUPS = np.zeros(20)
SAME = np.zeros(40, dtype=np.bool_)


def rows(mean: float, deviation: float, count: int = 200, task: str = "reviews") -> Seen:
    """Changes of labelled rows with just this mean and deviation."""
    drawn = np.random.default_rng(0).standard_normal(count)
    drawn = (drawn - drawn.mean()) / drawn.std(ddof=1)
    return Seen(task, "held-out rows", mean + deviation * drawn, np.zeros(count), np.zeros(count), np.arange(count) < 3)


def divergence(mean: float, changes: np.ndarray = np.empty(0), task: str = "sst2") -> Seen:  # noqa: B008 (not changed)
    return Seen(task, "divergence", changes, np.full(48, mean), np.arange(48) % 3, np.arange(48) < 5)


def only(seen: Seen) -> GuardedTask:
    (verdict,) = judge([seen], SETTINGS)
    return verdict


def test_log_loss_divergence_and_flips_are_of_the_answers() -> None:
    before, after = np.log([[0.8, 0.2], [0.6, 0.4], [0.5, 0.5]]), np.log([[0.7, 0.3], [0.4, 0.6], [0.5, 0.5]])
    seen = Seen.between("reviews", "divergence", before, after, np.array([[1.0, 0.0], [0.0, 1.0]]), np.zeros(3))
    np.testing.assert_allclose(seen.changes, [np.log(0.8 / 0.7), np.log(0.4 / 0.6)])
    expected = [0.8 * np.log(0.8 / 0.7) + 0.2 * np.log(0.2 / 0.3), 0.6 * np.log(1.5) + 0.4 * np.log(0.4 / 0.6), 0.0]
    np.testing.assert_allclose(seen.divergences, expected)
    assert seen.flipped.tolist() == [False, True, False]


def test_rows_that_lose_nothing_pass_and_rows_that_lose_fail() -> None:
    assert only(rows(0.0, 0.05)).passed
    assert only(rows(0.05, 0.05)).verdict == "fail"


def test_rows_too_noisy_to_show_that_nothing_is_lost_are_not_enough_evidence() -> None:
    verdict = only(rows(0.0, 0.5))
    assert verdict.verdict == "not enough evidence"
    assert not verdict.passed
    assert verdict.high is not None
    assert verdict.high > SETTINGS.margin


def test_the_rows_of_a_verdict_are_those_that_were_looked_at() -> None:
    verdict = only(rows(0.0, 0.05))
    assert (verdict.evidence, verdict.rows, verdict.flipped) == ("held-out rows", 200, 3)
    assert (only(divergence(0.0001)).rows, only(divergence(0.0001)).flipped) == (48, 5)


def test_a_small_divergence_passes_and_a_large_one_fails() -> None:
    margin = next(step for step in np.linspace(0.02, 0.0, 2001) if only(divergence(float(step))).passed)
    assert margin + 1.6449 * SETTINGS.spread * margin**0.5 == pytest.approx(SETTINGS.margin, rel=0.01)
    assert only(divergence(1.1 * float(margin))).verdict == "fail"


def test_of_groups_of_texts_the_worst_counts() -> None:
    """A task of pairs hardly reacts to single texts."""
    seen = Seen(
        "qqp", "divergence", np.empty(0), np.repeat([0.0001, 0.01], [30, 10]), np.repeat([1, 2], [30, 10]), SAME
    )
    verdict = only(seen)
    assert (verdict.verdict, verdict.increase) == ("fail", pytest.approx(0.01))


def test_few_labelled_rows_cannot_clear_a_task_but_they_can_object() -> None:
    good, bad = np.full(20, -1.0) + np.arange(20) / 100, np.full(20, 1.0) + np.arange(20) / 100
    assert only(divergence(0.0001, good)).passed
    assert only(divergence(0.05, good)).verdict == "fail"
    objection = only(divergence(0.0001, bad))
    assert (objection.verdict, objection.evidence, objection.rows) == ("fail", "held-out rows", 20)
    assert only(divergence(0.0001, bad[:4])).passed


def test_the_more_tasks_the_stricter_is_each_judged() -> None:
    edge = divergence(0.0034)
    assert judge([edge], SETTINGS)[0].passed
    many = judge([edge, *[divergence(0.0034, task=f"task-{number}") for number in range(9)]], SETTINGS)
    assert not any(verdict.passed for verdict in many)
    sure = judge([edge, *[divergence(0.0, task=f"task-{number}") for number in range(9)]], SETTINGS)
    assert all(verdict.passed for verdict in sure)


def test_the_upper_bound_is_within_the_margin_just_for_those_that_pass() -> None:
    steps = np.random.default_rng(0).uniform(0.0, 0.006, (50, 6))
    for part in steps:
        for verdict in judge([divergence(float(step), task=str(step)) for step in part], SETTINGS):
            assert verdict.high is not None
            assert verdict.passed == (verdict.high <= SETTINGS.margin)


def test_answers_that_are_no_numbers_fail_and_stay_json() -> None:
    before, after = np.log([[0.5, 0.5]] * 20), np.full((20, 2), np.nan)
    targets = np.eye(2)[[0, 1] * 10]
    verdicts = judge([
        Seen.between("a", "held-out rows", before, after, targets, NO_GROUPS),
        Seen.between("b", "divergence", before, after, np.empty((0, 2)), NO_GROUPS),
        divergence(0.0),
    ], SETTINGS)  # fmt: skip
    assert [verdict.verdict for verdict in verdicts] == ["fail", "fail", "pass"]
    json.dumps([verdict.to_json() for verdict in verdicts], allow_nan=False)
    assert "not finite numbers" in verdicts[0].reason
