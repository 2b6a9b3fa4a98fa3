"""The methods that `--method auto` tried: one row each, cheapest first, and why one was chosen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from onboard.report.reading import mapping, mappings, number, text

TRIED_HEAD: Final = ["method", "loss, nats (95%)", "above the lowest", "bytes", "numbers trained", "seconds"]
_NONE: Final = "–"


@dataclass(frozen=True, slots=True)
class MethodsTried:
    """A table (head, rows), and why the method was chosen, why no further one was tried, and by which rows."""

    head: list[str]
    rows: list[list[str]]
    notes: list[str]


def methods_tried(document: Mapping[str, Any]) -> MethodsTried | None:
    """Return the cells of `TRIED_HEAD` per method; the second gives the reason of a failure. None if none was tried."""
    methods = mapping(document.get("methods"))
    if not methods:
        return None
    rows = [_row(tried, text(methods.get("chosen"))) for tried in mappings(methods.get("tried"))]
    return MethodsTried(TRIED_HEAD, rows, _notes(methods))


def _notes(methods: Mapping[str, Any]) -> list[str]:
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
