"""Dataclasses as JSON-compatible documents."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from onboard.domain.moment import to_iso


def document_of(record: Any, *left_out: str, **instead: Any) -> dict[str, Any]:
    """The fields of a dataclass in their order: moments (`at`, `*_at`) as ISO 8601 in UTC, tuples as lists.

    Args:
        left_out: fields that are not told.
        instead: what is told of a field instead of its value.
    """
    names = [declared.name for declared in fields(record) if declared.name not in left_out]
    return {name: instead[name] if name in instead else told(name, getattr(record, name)) for name in names}


def told(name: str, value: Any) -> Any:
    """A field's value in a document: moments as ISO 8601 in UTC, tuples as lists."""
    if (name == "at" or name.endswith("_at")) and not isinstance(value, str):
        return to_iso(value)
    return list(value) if isinstance(value, tuple) else value
