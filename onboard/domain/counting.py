"""How many there are, for people."""

from __future__ import annotations


def counted(count: float, noun: str) -> str:
    """ "1 row", "1,200 rows"."""
    return f"{count:,.0f} {noun}{'' if count == 1 else 's'}"
