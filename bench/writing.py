"""What a measurement leaves: its numbers as JSON, and the page that shows them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def write(document: dict[str, Any], output: Path | None, page: str, table: Path | None) -> None:
    """Write the numbers and the page, each where a file is named for it."""
    for path, text in ((output, json.dumps(document, indent=1) + "\n"), (table, page)):
        if path:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
