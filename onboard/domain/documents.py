"""Convert dataclasses to JSON-compatible documents."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from onboard.domain.moment import to_iso


def document_of(record: Any, *left_out: str, **instead: Any) -> dict[str, Any]:
    """Return the fields of a dataclass in order, with times (`at`, `*_at`) as ISO 8601 in UTC and tuples as lists."""
    names = [declared.name for declared in fields(record) if declared.name not in left_out]
    return {name: instead[name] if name in instead else told(name, getattr(record, name)) for name in names}


def told(name: str, value: Any) -> Any:
    """Convert a field's value: times to ISO 8601 in UTC, tuples to lists."""
    if (name == "at" or name.endswith("_at")) and not isinstance(value, str):
        return to_iso(value)
    return list(value) if isinstance(value, tuple) else value
