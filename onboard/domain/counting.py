"""Format counts, and round measured numbers."""

from __future__ import annotations

from typing import overload


def counted(count: float, noun: str) -> str:
    """Return "1 row", "1,200 rows"."""
    return f"{count:,.0f} {noun}{'' if count == 1 else 's'}"


def size_text(size_bytes: float) -> str:
    """Return a number of bytes in its largest unit, rounded to a tenth: "999 bytes", "12 kB", "1.5 GB"."""
    size, unit = float(size_bytes), "bytes"
    for larger in ("kB", "MB", "GB", "TB"):
        if round(size, 1) < 1000:
            break
        size, unit = size / 1000, larger
    if unit == "bytes":
        return counted(size, "byte")
    return f"{size:,.1f}".removesuffix(".0") + f" {unit}"


@overload
def significant(value: float) -> float: ...
@overload
def significant(value: float | None) -> float | None: ...
def significant(value: float | None) -> float | None:
    """Round to six significant digits: more than rows can show, and a third of the size of 17."""
    return None if value is None else float(f"{value:.6g}")
