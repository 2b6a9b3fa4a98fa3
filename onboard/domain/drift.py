"""Days and weeks of texts, and their sums: only numbers, and days can be added."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final

DAY_SECONDS: Final = 86_400
_EPOCH: Final = date(1970, 1, 1)
_MONDAY: Final = 3  # days from the Monday before the epoch to the epoch, a Thursday

Sums = dict[str, Any]
"""Numbers and lists of numbers by name, as `onboard.statistics.drift.Sums.to_json` gives them."""


@dataclass(frozen=True, slots=True)
class DriftDay:
    """The sums of the texts that a version answered on one day.

    Args:
        day: since 1970-01-01, in UTC.
        looked: the number of texts in its week at which the comparison was last made; 0 before the first.
        alarm: the alarm of that comparison, if it raised one.
    """

    task: str
    version: int
    day: int
    texts: int
    sums: Sums
    looked: int
    alarm: dict[str, Any] | None


def day_of(seconds: float) -> int:
    """The day (UTC) of epoch seconds."""
    return int(seconds // DAY_SECONDS)


def week_of(day: int) -> int:
    """The number of the day's week, which begins on Monday."""
    return (day + _MONDAY) // 7


def days_of(week: int) -> range:
    """The seven days of a week."""
    monday = 7 * week - _MONDAY
    return range(monday, monday + 7)


def date_of(day: int) -> str:
    """The day as YYYY-MM-DD."""
    return (_EPOCH + timedelta(days=day)).isoformat()


def monday_of(week: int) -> str:
    """The first day of a week as YYYY-MM-DD."""
    return date_of(days_of(week)[0])


def moment_of(seconds: float) -> str:
    """Epoch seconds as a UTC time, ISO 8601."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def added(one: Mapping[str, Any], other: Mapping[str, Any]) -> Sums:
    """The sums of two groups of texts together. Raises KeyError, ValueError: they are not of the same shape."""
    return {
        name: [a + b for a, b in zip(value, other[name], strict=True)] if isinstance(value, list)
        else value + other[name]
        for name, value in one.items()
    }  # fmt: skip


def together(every: Iterable[Mapping[str, Any]]) -> Sums | None:
    """The sums of several groups; None of none."""
    sums: Sums | None = None
    for one in every:
        sums = dict(one) if sums is None else added(sums, one)
    return sums
