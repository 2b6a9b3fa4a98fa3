"""A regression value becomes weights on 21 buckets, and is read back by expectation."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onboard.data.regression import BUCKETS, Buckets


def test_sts_b_has_steps_of_a_quarter() -> None:
    buckets = Buckets(0.0, 5.0)
    assert len(buckets.values) == len(buckets.words) == BUCKETS == 21
    assert buckets.words[:5] == ("0", "0.25", "0.5", "0.75", "1")
    assert buckets.width == 0.25
    assert buckets.values[-1] == 5.0


def test_a_value_between_two_buckets_is_shared_by_them() -> None:
    target = Buckets(0.0, 5.0).soft_target(0.3)
    assert target[1:3] == pytest.approx((0.8, 0.2))
    assert sum(target) == pytest.approx(1.0)


@pytest.mark.parametrize(("value", "bucket"), [(-3.0, 0), (0.0, 0), (2.5, 10), (5.0, 20), (9.0, 20)])
def test_a_bucket_itself_and_what_lies_beyond_the_ends_is_one_bucket(value, bucket) -> None:
    assert Buckets(0.0, 5.0).soft_target(value) == tuple(float(index == bucket) for index in range(21))


@settings(max_examples=150, deadline=None)
@given(
    st.floats(-1e6, 1e6).filter(lambda low: abs(low) > 1e-6 or low == 0),
    st.floats(1e-3, 1e6),
    st.floats(0, 1),
)
def test_the_expectation_of_a_soft_target_is_the_value(low, spread, share) -> None:
    buckets = Buckets(low, low + spread)
    value = min(low + share * spread, buckets.high)
    target = buckets.soft_target(value)
    assert all(0.0 <= weight <= 1.0 for weight in target)
    assert buckets.expectation(target) == pytest.approx(value, abs=1e-9 * (abs(low) + spread))
    assert len(set(buckets.words)) == 21


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [
        (0.0, 100.0, ("0", "5", "10")),
        (-1.0, 1.0, ("-1", "-0.9", "-0.8")),
        (0.0, 4.87, ("0", "0.24", "0.49")),
        (1e12, 1e12 + 1e-3, ("0", "1", "2")),
    ],
)
def test_words_are_short_numbers_that_stay_distinct(low, high, words) -> None:
    buckets = Buckets(low, high)
    assert buckets.words[:3] == words
    assert len(set(buckets.words)) == 21


def test_an_empty_range_is_refused() -> None:
    with pytest.raises(ValueError, match="no buckets"):
        Buckets(1.0, 1.0)
