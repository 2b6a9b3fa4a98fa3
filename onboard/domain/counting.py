"""Format counts, and round measured numbers."""

from __future__ import annotations

from typing import overload


def counted(count: float, noun: str) -> str:
    """Return "1 row", "1,200 rows"."""
    return f"{count:,.0f} {noun}{'' if count == 1 else 's'}"


@overload
def significant(value: float) -> float: ...
@overload
def significant(value: float | None) -> float | None: ...
def significant(value: float | None) -> float | None:
    """Round to six significant digits: more than rows can show, and a third of the size of 17."""
    return None if value is None else float(f"{value:.6g}")
