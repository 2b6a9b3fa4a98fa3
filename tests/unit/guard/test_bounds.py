"""How sure an increase is, and Holm's procedure."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from onboard.statistics.bounds import Increase, increase_of_divergence, increase_of_losses
from onboard.statistics.holm import holm_levels

PROBABILITIES = st.lists(st.floats(0.0, 1.0), min_size=1, max_size=12)


def test_the_bound_of_paired_losses_is_that_of_students_t() -> None:
    changes = np.random.default_rng(0).normal(0.01, 0.1, 40)
    increase = increase_of_losses(changes)
    low, high = stats.ttest_1samp(changes, 0.0).confidence_interval(0.90)
    assert increase.high(0.05) == pytest.approx(high)
    assert increase.low(0.05) == pytest.approx(low)
    assert increase.p_value(0.02) == pytest.approx(stats.ttest_1samp(changes, 0.02, alternative="less").pvalue)


def test_the_p_value_is_below_the_level_just_where_the_bound_is_within_the_margin() -> None:
    for mean in np.linspace(-0.02, 0.04, 31):
        for increase in (Increase(mean, 0.01, 20), Increase(mean, 0.01)):
            assert (increase.p_value(0.02) <= 0.05) == (increase.high(0.05) <= 0.02)


def test_no_change_at_all_is_certain() -> None:
    increase = increase_of_losses(np.zeros(30))
    assert (increase.p_value(0.02), increase.high(0.05), increase.detectable(0.05)) == (0.0, 0.0, 0.0)
    assert increase_of_divergence(0.0, 0.15).high(0.05) == 0.0


def test_what_is_no_number_is_never_small() -> None:
    for changes in (np.array([0.0, np.nan, 0.0]), np.array([0.0, np.inf, 0.0]), np.full(9, np.nan)):
        assert increase_of_losses(changes).p_value(0.02) == 1.0
        assert increase_of_divergence(float(changes.mean()), 0.15).p_value(0.02) == 1.0


@pytest.mark.parametrize("count", [0, 1])
def test_a_single_row_says_nothing(count: int) -> None:
    assert increase_of_losses(np.zeros(count)).p_value(0.02) > 0.05
    assert math.isinf(increase_of_losses(np.zeros(count)).high(0.05))


def test_a_divergence_bounds_the_increase_by_its_root() -> None:
    increase = increase_of_divergence(0.004, 0.15)
    assert increase.mean == pytest.approx(0.004)
    assert increase.high(0.05) == pytest.approx(0.004 + 1.6449 * 0.15 * math.sqrt(0.004), abs=1e-6)


def test_the_detectable_increase_is_noticed_in_four_of_five_cases() -> None:
    increase = Increase(0.0, 0.02)
    drawn = np.random.default_rng(1).normal(increase.detectable(0.05), increase.error, 40_000)
    noticed = drawn - (increase.high(0.05) - increase.mean) > 0.0
    assert noticed.mean() == pytest.approx(0.8, abs=0.01)


@given(PROBABILITIES)
def test_holm_rejects_just_what_the_textbook_does(p_values: list[float]) -> None:
    levels = holm_levels(p_values, 0.05)
    rejected = {index for index, (p, level) in enumerate(zip(p_values, levels, strict=True)) if p <= level}
    textbook: set[int] = set()
    for place, index in enumerate(sorted(range(len(p_values)), key=lambda index: (p_values[index], index))):
        if p_values[index] > 0.05 / (len(p_values) - place):
            break
        textbook.add(index)
    assert rejected == textbook


def test_one_task_alone_is_judged_at_the_whole_level_and_the_surest_of_ten_at_a_tenth() -> None:
    assert holm_levels([0.2], 0.05) == [0.05]
    assert holm_levels([0.001] + [0.9] * 9, 0.05)[0] == pytest.approx(0.005)


def test_a_task_of_unknown_loss_stops_holms_procedure() -> None:
    assert holm_levels([1.0, 0.0], 0.05) == [0.05, 0.025]
