"""What a job's document says of memory that was too small. JSON throughout."""

from __future__ import annotations

from typing import TypedDict


class HalvedJson(TypedDict, total=False):
    """A GPU's memory was too small for so many rows at once; `rows_at_once` were taken from then on."""

    stage: str
    rows: int
    rows_at_once: int
