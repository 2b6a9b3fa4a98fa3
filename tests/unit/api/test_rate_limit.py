"""How often a caller may ask: a bucket that fills up again with time."""

from __future__ import annotations

import pytest

from onboard.api import limits
from onboard.api.limits import RateLimit
from onboard.errors import RateLimitError


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_a_limit_fills_up_again_with_time() -> None:
    clock = Clock()
    limit = RateLimit(60, clock)
    for _ in range(60):
        limit.take("me")
    with pytest.raises(RateLimitError) as refused:
        limit.take("me")
    assert refused.value.data["retry_after_seconds"] == 1
    clock.now += 2.0
    limit.take("me")
    limit.take("me")
    with pytest.raises(RateLimitError):
        limit.take("me")
    clock.now += 3600.0
    for _ in range(60):  # never more than a minute's worth
        limit.take("me")
    with pytest.raises(RateLimitError):
        limit.require("me")


def test_asking_for_room_takes_none_and_no_limit_refuses_nobody() -> None:
    limit = RateLimit(1, Clock())
    limit.require("me")
    limit.require("me")
    limit.take("me")
    with pytest.raises(RateLimitError):
        limit.require("me")
    for _ in range(1000):
        RateLimit(0).take("me")


def test_a_limit_remembers_so_many_callers_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MOST_CALLERS", 100)
    limit = RateLimit(2, Clock())
    for number in range(1000):
        limit.take(f"caller {number}")
    assert len(limit._left) == 100
    limit = RateLimit(2, Clock())
    for number in range(150):
        limit.take(f"caller {number}")
        if number % 75 == 0:
            limit.take("steady")  # who asked lately is not forgotten
    with pytest.raises(RateLimitError):
        limit.take("steady")
