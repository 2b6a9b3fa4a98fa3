"""JSON that somebody else wrote: whatever is wrong with it is a ValueError."""

from __future__ import annotations

import json
from typing import Any


def parse_json(content: str | bytes) -> Any:
    """The document.

    Raises:
        ValueError: it is no JSON, no UTF-8, or nested so deep that Python cannot follow.
    """
    try:
        return json.loads(content)
    except RecursionError as error:
        raise ValueError("it is nested too deep") from error
