"""The part of a job's document about insufficient memory. JSON throughout."""

from __future__ import annotations

from typing import TypedDict


class HalvedJson(TypedDict, total=False):
    """A GPU ran out of memory; from then on, batches had `rows_at_once` rows."""

    stage: str
    rows: int
    rows_at_once: int
