"""The journal of a run: JSON lines."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

Line = dict[str, Any]


class Journal:
    """Appends lines to a file, each with its moment (`at`, epoch seconds), and keeps them; any thread may write."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lines: list[Line] = []
        self._lock = threading.Lock()

    def write(self, what: str, **facts: Any) -> None:
        """Keep one line; it is on disk when this returns."""
        line = {"at": round(time.time(), 3), "what": what, **facts}
        with self._lock, self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
            self.lines.append(line)

    def of(self, what: str) -> list[Line]:
        """The lines of one sort."""
        with self._lock:
            return [line for line in self.lines if line["what"] == what]

    def counted(self, what: str, by: str) -> dict[str, int]:
        """How many lines of one sort there are by the value of a field, the commonest first."""
        return dict(Counter(str(line[by]) for line in self.of(what)).most_common())
