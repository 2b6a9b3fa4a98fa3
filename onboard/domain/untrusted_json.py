"""Parse JSON from outside: every problem is a ValueError."""

from __future__ import annotations

import json
from typing import Any


def parse_json(content: str | bytes) -> Any:
    """Parse a document.

    Raises:
        ValueError: it is invalid JSON, invalid UTF-8, or nested too deeply for Python.
    """
    try:
        return json.loads(content)
    except RecursionError as error:
        raise ValueError("it is nested too deep") from error
