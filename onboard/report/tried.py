"""What a report says of the methods that `--method auto` tried: a row each, the cheapest first; why one was taken."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from onboard.report.reading import mapping, mappings, number, text

TRIED_HEAD: Final = ["method", "loss, nats (95%)", "behind the least", "bytes", "numbers trained", "seconds"]
_NONE: Final = "–"


def tried_rows(document: Mapping[str, Any]) -> list[list[str]]:
    """Per method the cells of `TRIED_HEAD`; what came to nothing tells why in the second."""
    methods = mapping(document.get("methods"))
    return [_row(tried, text(methods.get("chosen"))) for tried in mappings(methods.get("tried"))]


def tried_notes(document: Mapping[str, Any]) -> list[str]:
    """Why this one, why no further one, and by which rows; nothing where no method was to be chosen."""
    methods = mapping(document.get("methods"))
    rows, evidence = number(methods.get("rows")), text(methods.get("evidence"))
    by = f"Judged by {rows:,.0f} {evidence}, the same for all." if rows and evidence else ""
    notes = [text(methods.get("reason")), text(methods.get("stopped")), by]
    return list(dict.fromkeys(note for note in notes if note))


def _row(tried: Mapping[str, Any], chosen: str) -> list[str]:
    name = text(tried.get("method"))
    shown = f"{name} (published)" if name == chosen else name
    loss, low, high = (number(tried.get(key)) for key in ("loss", "low", "high"))
    if loss is None:
        return [shown, text(tried.get("reason")) or _NONE, *[_NONE] * 4]
    interval = "" if low is None or high is None else f" ({low:.3f} to {high:.3f})"
    return [
        shown, f"{loss:.3f}{interval}", _behind(tried), _count(tried, "bytes"), _count(tried, "trained"),
        _count(tried, "seconds"),
    ]  # fmt: skip


def _behind(tried: Mapping[str, Any]) -> str:
    behind, error = number(tried.get("behind")), number(tried.get("error"))
    if not behind or error is None:
        return _NONE if behind is None else "0"
    return f"{behind:.3f} (standard error {error:.3f})"


def _count(tried: Mapping[str, Any], key: str) -> str:
    count = number(tried.get(key))
    return _NONE if count is None else f"{count:,.0f}"
