"""Times and durations: epoch seconds internally (`*_at`), ISO 8601 in UTC externally; durations as text."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

_MINUTE: Final = 60  # seconds
_HOUR: Final = 60 * _MINUTE
_DAY: Final = 24 * _HOUR


def to_iso(at: float | None) -> str | None:
    """Format epoch seconds as ISO 8601 in UTC with milliseconds (`2026-01-31T12:00:00.000Z`); None stays None."""
    if at is None:
        return None
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def from_iso(text: str | None) -> float:
    """Parse the output of `to_iso`; 0 for None. Raises ValueError."""
    return 0.0 if text is None else datetime.fromisoformat(text).timestamp()


def rounded(seconds: float | None, digits: int = 3) -> float | None:
    """Round a duration for a document; None stays None."""
    return None if seconds is None else round(seconds, digits)


def utc_text(at: float) -> str:
    """Format epoch seconds for display, in UTC to the second: "2026-01-31 12:00:00"."""
    return datetime.fromtimestamp(at, UTC).isoformat(" ", "seconds").removesuffix("+00:00")


def seconds_text(seconds: float) -> str:
    """Format a duration in at most two parts: "0.4 s", "12 s", "3 min 20 s", "24 h", "2 d 3 h"."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < _MINUTE:
        return f"{whole} s"
    if whole < _HOUR:
        return _parts(whole, _MINUTE, "min", 1, "s")
    return _parts(whole, _HOUR, "h", _MINUTE, "min") if whole < 2 * _DAY else _parts(whole, _DAY, "d", _HOUR, "h")


def rough_text(seconds: float) -> str:
    """Format a duration in two digits: "0.4 s", "12 s", "3.3 min", "24 h", "2.1 d"."""
    limits = ((_MINUTE, 1, "s"), (_HOUR, _MINUTE, "min"), (2 * _DAY, _HOUR, "h"))
    size, name = next(((size, name) for limit, size, name in limits if seconds < limit - size / 2), (_DAY, "d"))
    units = seconds / size
    return f"{units:.1f} {name}" if units < 9.95 else f"{units:.0f} {name}"


def _parts(seconds: int, unit: int, name: str, part: int, part_name: str) -> str:
    rest = seconds % unit // part
    return f"{seconds // unit} {name}" + (f" {rest} {part_name}" if rest else "")
