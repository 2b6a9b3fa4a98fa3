"""How many there are, for people; how exactly what was measured is kept."""

from __future__ import annotations

from typing import overload


def counted(count: float, noun: str) -> str:
    """ "1 row", "1,200 rows"."""
    return f"{count:,.0f} {noun}{'' if count == 1 else 's'}"


@overload
def significant(value: float) -> float: ...
@overload
def significant(value: float | None) -> float | None: ...
def significant(value: float | None) -> float | None:
    """A measured number in six significant digits, which is more than rows can tell, and a third of what 17 take."""
    return None if value is None else float(f"{value:.6g}")
