"""Moments: epoch seconds inside (`*_at`), ISO 8601 in UTC outside."""

from __future__ import annotations

from datetime import UTC, datetime


def to_iso(at: float | None) -> str | None:
    """Epoch seconds as ISO 8601 in UTC with milliseconds (`2026-01-31T12:00:00.000Z`); None stays None."""
    if at is None:
        return None
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
