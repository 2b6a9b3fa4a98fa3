"""The figures of the transfer bench: intervals that hold the truth as often as they say, and p-values."""

from __future__ import annotations

import numpy as np
import pytest

from bench.harness.figures import bootstrap_of_tasks, figure, figure_of_tasks, figures
from bench.harness.holm import holm_adjusted

DIFFERENT, ROWS = 0.2, 500  # share of rows on which two methods differ


def made(rng: np.random.Generator, draws: int, deviation: float) -> np.ndarray:
    """Differences of two methods (S, R) that are alike: half of what a row says is the same in all draws, and each draw
    is off by something of that deviation."""

    def difference(*shape: int) -> np.ndarray:
        return np.where(rng.random(shape) < DIFFERENT, rng.choice([-1.0, 1.0], shape), 0.0)

    matrix = np.where(rng.random((draws, ROWS)) < 0.5, difference(draws, ROWS), difference(1, ROWS))
    off = rng.normal(0.0, deviation, (draws, 1))
    return matrix + np.where(rng.random((draws, ROWS)) < np.abs(off), np.sign(off), 0.0)


def test_the_interval_is_the_binomials_where_only_rows_vary() -> None:
    mean = figure({("a", 16): np.array([[1.0, 0.0] * 200])})
    assert (mean.value, mean.low, mean.high) == pytest.approx((50.0, 45.1, 54.9), abs=0.05)


def test_the_interval_holds_what_draws_differ_by() -> None:
    draws = np.repeat([[0.4], [0.5], [0.6]], 50, axis=1)
    mean = figure({("a", 16): draws})  # t with two degrees of freedom: 4.303 × 0.1 / √3
    assert (mean.value, mean.low, mean.high) == pytest.approx((50.0, 25.2, 74.8), abs=0.05)
    four = figure({(task, 16): draws for task in "abcd"})  # with eight: 2.306 × 0.1 / √12
    assert (four.low, four.high) == pytest.approx((43.3, 56.7), abs=0.05)


def test_a_mean_over_tasks_varies_less_than_each_and_a_sure_deficit_has_a_small_p() -> None:
    matrix = -np.array([[1.0, 0.0] * 50])
    one, four = figure({("a", 16): matrix}), figure({(task, 16): matrix for task in "abcd"})
    assert (four.high - four.low) == pytest.approx((one.high - one.low) / 2, rel=0.01)
    assert four.below < 1e-6
    assert figure({("a", 16): np.zeros((2, 5))}).below == 1.0
    assert figure({("a", 16): -np.ones((2, 5))}).below == 0.0


def test_cells_of_one_task_do_not_count_as_several_tasks() -> None:
    matrix = made(np.random.default_rng(0), 3, 0.03)
    one, twice = figure({("a", 16): matrix}), figure({("a", 16): matrix, ("a", 100): matrix})
    assert (twice.value, twice.low, twice.high) == pytest.approx((one.value, one.low, one.high))
    assert (one.cells, twice.cells) == (1, 2)


@pytest.mark.parametrize("by_task", [False, True])
@pytest.mark.parametrize("deviation", [0.0, 0.03, 0.05])
def test_intervals_hold_the_truth_and_holm_calls_few_true_nulls(deviation: float, by_task: bool) -> None:
    """Of 95% intervals and a level of 5%; a bootstrap over three draws holds it in 84% and calls up to 38%."""
    rng, repeated = np.random.default_rng(1), 200
    held, held_by_mean, called = [], [], []
    for _ in range(repeated):
        cells = {(f"task{task}", n): made(rng, 3, deviation) for task in range(6) for n in (16, 100)}
        intervals, mean = figures(cells, by_task=by_task).values(), figure(cells)
        held += [interval.low <= 0 <= interval.high for interval in intervals]
        held_by_mean.append(mean.low <= 0 <= mean.high)
        called.append(min(holm_adjusted([interval.below for interval in intervals])) < 0.05)
    assert np.mean(held) > 0.94
    assert 0.91 < np.mean(held_by_mean) < 0.99
    assert np.mean(called) < 0.08


def test_a_task_whose_draws_differ_much_hides_no_deficit_of_another() -> None:
    rng = np.random.default_rng(2)
    calm, wild = made(rng, 3, 0.0), np.repeat([[-0.3], [0.0], [0.3]], ROWS, axis=1)
    intervals = figures({("calm", 16): calm, ("calm", 100): calm - 0.08, ("wild", 16): wild}, by_task=True)
    assert intervals["wild", 16].high - intervals["wild", 16].low > 50
    assert intervals["calm", 16] == figures({("calm", 16): calm, ("calm", 100): calm - 0.08}, by_task=True)["calm", 16]
    assert min(holm_adjusted([interval.below for interval in intervals.values()])) < 0.05


def test_a_cell_has_the_interval_of_its_tasks_cells_or_its_own_and_equal_trainings_say_nothing() -> None:
    calm = made(np.random.default_rng(2), 3, 0.0)
    wild, same = np.repeat([[-0.3], [0.0], [0.3]], ROWS, axis=1), np.zeros_like(calm)
    intervals = figures({("a", 16): calm, ("a", 100): wild})
    assert intervals["a", 100].high > intervals["a", 16].high > figures({("a", 16): calm})["a", 16].high
    beside_same = figures({("a", 16): calm, ("a", 100): wild, ("a", 32): same})
    assert beside_same["a", 16] == intervals["a", 16]
    assert (beside_same["a", 32].value, figures({("a", 32): same})["a", 32].high) == (0, 0)
    apart = figures({("a", 16): calm, ("b", 16): wild})
    assert apart == {("a", 16): intervals["a", 16], ("b", 16): intervals["a", 100]}, (
        "over all where tasks are not told apart"
    )


def test_a_mean_of_tasks_has_students_t_over_them_whatever_their_draws_share() -> None:
    cells = {(task, n): np.full((3, ROWS), value + off) for task, value in zip("abc", (0.1, 0.2, 0.6), strict=True)
             for n, off in ((16, -0.1), (100, 0.1))}  # fmt: skip
    mean = figure_of_tasks(cells)  # 4.303 × 0.2646 / √3
    assert (mean.value, mean.low, mean.high) == pytest.approx((30.0, -35.7, 95.7), abs=0.05)
    assert mean.cells == 6
    # All three the lowest, or the highest: 1 of 27 draws with replacement each.
    assert bootstrap_of_tasks(cells) == pytest.approx((10.0, 60.0))
    one = {place: matrix for place, matrix in cells.items() if place[0] == "a"}
    assert figure_of_tasks(one) == figure(one)
