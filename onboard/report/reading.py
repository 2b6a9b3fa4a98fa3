"""Read a document in which every key may be absent, null, or written by another version of the code."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from onboard.data.previews import both_ends
from onboard.domain.dataset import label_text
from onboard.domain.job import BULK

_LABEL_CHARACTERS: Final = 40  # of a label in a table, a chart or a sentence


def mapping(value: Any) -> Mapping[str, Any]:
    """Return the value if it is a JSON object, else an empty one."""
    return value if isinstance(value, Mapping) else {}


def mappings(value: Any) -> list[Mapping[str, Any]]:
    """Return the JSON objects of a list; an empty list for anything else."""
    return [entry for entry in listing(value) if isinstance(entry, Mapping)]


def within(document: Mapping[str, Any], *keys: str) -> Any:
    """Return a nested value; None if a key is missing."""
    value: Any = document
    for key in keys:
        value = mapping(value).get(key)
    return value


def bulk_request(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the request of a job that answers files; empty for other jobs."""
    return mapping(within(document, "spec", "options", BULK))


def listing(value: Any) -> Sequence[Any]:
    """Return the value if it is a list, else an empty one."""
    return value if isinstance(value, (list, tuple)) else []


def number(value: Any) -> float | None:
    """Return the value if it is a finite number, not a boolean, else None."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value) if math.isfinite(value) else None


def numbers(value: Any) -> list[float]:
    """Return the finite numbers of a list, in order."""
    return [finite for entry in listing(value) if (finite := number(entry)) is not None]


def text(value: Any) -> str:
    """Return the value as text; "" for None."""
    return "" if value is None else str(value)


def any_label(label: Any) -> str:
    """Return a label for display; anything else as plain text."""
    is_label = isinstance(label, (str, bool)) or number(label) is not None
    return label_text(label) if is_label else text(label)


def label_name(label: Any) -> str:
    """Return a label for display; long ones are shortened in the middle."""
    return both_ends(any_label(label), _LABEL_CHARACTERS)
