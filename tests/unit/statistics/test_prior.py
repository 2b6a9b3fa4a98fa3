"""A prior for readouts: a closed form of the lessons alone, and readouts that are drawn towards what it says."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from support.refusals import refused

from onboard.statistics.prior import Lesson, Prior, fit_prior, names_on_scale
from onboard.statistics.probabilities import mean_loss
from onboard.statistics.readout import PRIOR_SCALES, SILENT_SCALE, answers_after, fit_readout, lesson_of
from onboard.statistics.ridge import Path

WIDTH, BLOCKS = 4, 3
SIZE = WIDTH * BLOCKS
MAP = np.random.default_rng(0).normal(size=(SIZE, SIZE))  # from the words of a label to where its texts lie


def task(seed: int, rows: int = 240, labels: int = 3, noise: float = 4.0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Features of rows, their labels one-hot, and features of the labels' words, which say where the rows lie."""
    rng = np.random.default_rng(seed)
    words = rng.normal(size=(labels, SIZE))
    targets = np.eye(labels)[np.arange(rows) % labels]
    roots = targets @ (words - words.mean(0)) @ MAP.T / np.sqrt(SIZE) + noise * rng.normal(size=(rows, SIZE))
    return np.sign(roots) * roots**2, targets, np.sign(words) * words**2


def lessons(count: int) -> dict[str, Lesson]:
    made = {}
    for number in range(count):
        features, targets, names = task(number, noise=1.0)
        made[f"task{number:02}"] = lesson_of(features, targets, names, BLOCKS)
    return made


@pytest.fixture(scope="module")
def prior() -> Prior:
    fitted = fit_prior(lessons(40))
    assert fitted is not None
    return fitted


def alone(count: int) -> list[np.ndarray]:
    return [np.array([row]) for row in range(count)]


def test_a_lesson_is_the_readout_of_the_rows_alone_centred_over_the_labels() -> None:
    features, targets, names = task(1)
    lesson = lesson_of(features, targets, names, BLOCKS)
    roots = np.sign(features) * np.sqrt(np.abs(features))
    centred = roots - roots.mean(0)
    squares = (centred**2).mean(0).reshape(BLOCKS, WIDTH).sum(1)
    x = centred / np.repeat(np.sqrt(BLOCKS * squares), WIDTH)
    solved = np.linalg.solve(x.T @ x + np.eye(SIZE), x.T @ (targets - targets.mean(0))).T
    np.testing.assert_allclose(lesson.weights, solved - solved.mean(0), atol=1e-3)
    assert (lesson.rows, lesson.weights.dtype, lesson.names.dtype) == (240, np.float16, np.float16)
    assert np.array_equal(lesson.names, names_on_scale(names))
    assert np.abs(lesson.weights.astype(np.float64).sum(0)).max() < 0.01


def test_it_is_the_same_to_the_last_bit_whatever_the_order_and_without_a_task_as_if_that_had_not_been_there() -> None:
    all_of_them = lessons(6)
    fitted, turned = fit_prior(all_of_them), fit_prior(dict(reversed(all_of_them.items())))
    assert fitted is not None
    assert turned is not None
    assert fitted.matrix.tobytes() == turned.matrix.tobytes()
    fewer = {name: lesson for name, lesson in all_of_them.items() if name != "task03"}
    without, again = fit_prior(fewer), fit_prior(dict(reversed(fewer.items())))
    assert without is not None
    assert again is not None
    assert without.matrix.tobytes() == again.matrix.tobytes() != fitted.matrix.tobytes()
    assert fit_prior({}) is None


def test_a_lesson_with_numbers_that_are_none_is_left_out_and_named() -> None:
    sound = lessons(4)
    broken = replace(sound["task02"], weights=np.full_like(sound["task02"].weights, np.nan))
    fitted = fit_prior({**sound, "task02": broken})
    without = fit_prior({name: lesson for name, lesson in sound.items() if name != "task02"})
    assert fitted is not None
    assert without is not None
    assert fitted.left_out == ("task02",)
    assert fitted.matrix.tobytes() == without.matrix.tobytes()
    assert fit_prior({"task02": broken}) is None


def test_lessons_of_several_bases_are_refused(prior: Prior) -> None:
    sound = lessons(2)
    narrow = replace(sound["task01"], weights=sound["task01"].weights[:, :WIDTH])
    with refused("lessons-of-several-bases"):
        fit_prior({"a": sound["task00"], "b": narrow})
    features, targets, names = task(90, rows=12)
    with refused("prior-width-differs"):
        fit_readout(
            features[:, :WIDTH], targets, alone(12), blocks=1, names=names[:, :WIDTH], prior=np.zeros((3, SIZE))
        )


def test_what_each_task_brought_sums_to_one(prior: Prior) -> None:
    names = prior.lessons["task07"].names
    shares = prior.contributions(names)
    assert sum(shares.values()) == pytest.approx(1.0, abs=1e-3)
    assert next(iter(shares)) == "task07"  # its own words are asked about
    assert list(shares.values()) == sorted(shares.values(), reverse=True)


def test_few_rows_are_answered_better_with_what_earlier_tasks_say_of_the_words(prior: Prior) -> None:
    gains = []
    for seed in range(100, 112):
        features, targets, names = task(seed)
        train, held = (features[:9], targets[:9]), (features[9:], targets[9:])
        losses = [
            mean_loss(fit_readout(*train, alone(9), blocks=BLOCKS, names=names, prior=known).readout.probabilities(
                held[0]), held[1]) for known in (None, prior)
        ]  # fmt: skip
        gains.append(losses[0] - losses[1])
    assert np.mean(gains) > 0.02
    assert np.mean(np.array(gains) > 0) > 0.7


def test_predictions_without_a_group_are_those_of_a_regression_towards_the_prior_without_it() -> None:
    features, targets, _ = task(5, rows=24)
    towards, groups = np.random.default_rng(2).normal(size=(3, SIZE)), [np.arange(start, 24, 4) for start in range(4)]
    x = np.hstack([features - features.mean(0), np.ones((24, 1))])
    path = Path.of(x, targets, np.ones(24)).drawn(x, towards, 0.5)
    whole = np.hstack([0.5 * towards, np.zeros((3, 1))])
    predicted, apart = path.without(groups, 0.3), targets - x @ whole.T
    for group in groups:
        rest = np.setdiff1d(np.arange(24), group)
        solved = np.linalg.solve(x[rest].T @ x[rest] + 0.3 * np.eye(SIZE + 1), x[rest].T @ apart[rest])
        given_back = (apart - apart.mean(0))[group].sum(0) / (len(rest) + 0.3)
        np.testing.assert_allclose(predicted[group], x[group] @ (solved + whole.T) + given_back)
    solved = np.linalg.solve(x.T @ x + 0.3 * np.eye(SIZE + 1), x.T @ apart).T
    np.testing.assert_allclose(path.weights(0.3), solved + whole, atol=1e-9)


def test_a_prior_that_rows_left_out_do_not_want_leaves_no_trace(prior: Prior) -> None:
    features, targets, names = task(7, rows=60, noise=0.5)
    wrong = -20 * prior.weights(names_on_scale(names))
    plain = fit_readout(features, targets, alone(60), blocks=BLOCKS, names=names)
    fitted = fit_readout(features, targets, alone(60), blocks=BLOCKS, names=names, prior=wrong)
    assert fitted.scale == 0.0
    assert fitted.drawn_to is None
    assert fitted.readout.weights.tobytes() == plain.readout.weights.tobytes()
    assert np.array_equal(fitted.readout.bias, plain.readout.bias)
    few = fit_readout(features[:6], targets[:6], alone(6), blocks=BLOCKS, names=names, prior=wrong)
    assert few.scale == PRIOR_SCALES[0]  # too few rows to judge anything


def test_labels_that_say_nothing_use_the_prior_only_if_rows_ask_for_it(prior: Prior) -> None:
    features, targets, names = task(7, rows=60, noise=0.5)
    nothing = 0.02 * prior.weights(names_on_scale(names))  # rows do not care
    told = {
        usual: fit_readout(features, targets, alone(60), blocks=BLOCKS, prior=nothing, usual_scale=usual).scale
        for usual in (PRIOR_SCALES[0], SILENT_SCALE)
    }
    assert told == {PRIOR_SCALES[0]: PRIOR_SCALES[0], SILENT_SCALE: SILENT_SCALE}
    few = fit_readout(features[:6], targets[:6], alone(6), blocks=BLOCKS, prior=nothing, usual_scale=SILENT_SCALE)
    assert (few.scale, few.drawn_to) == (SILENT_SCALE, None)
    features, targets, names = task(101, rows=40)
    asked = fit_readout(features, targets, alone(40), blocks=BLOCKS, names=names, prior=prior, usual_scale=SILENT_SCALE)
    assert asked.scale > 0


def test_of_fewer_rows_it_is_drawn_towards_the_same(prior: Prior) -> None:
    features, targets, names = task(101, rows=40)
    fitted = fit_readout(features[:12], targets[:12], alone(12), blocks=BLOCKS, names=names, prior=prior)
    assert fitted.scale > 0
    asked = features[12:]
    again = answers_after(features[:12], targets[:12], asked, fitted, blocks=BLOCKS)
    np.testing.assert_allclose(again, fitted.readout.probabilities(asked), atol=5e-3)
    bare = answers_after(features[:12], targets[:12], asked, replace(fitted, drawn_to=None), blocks=BLOCKS)
    assert np.abs(bare - again).max() > 0.05


def test_a_regression_has_no_prior() -> None:
    features, _, _ = task(3, rows=30)
    buckets = np.eye(3)[np.arange(30) % 3]
    plain = fit_readout(features, buckets, alone(30), values=np.arange(3.0), blocks=BLOCKS)
    given = fit_readout(features, buckets, alone(30), values=np.arange(3.0), blocks=BLOCKS, prior=np.ones((3, SIZE)))
    assert given.readout.weights.tobytes() == plain.readout.weights.tobytes()
