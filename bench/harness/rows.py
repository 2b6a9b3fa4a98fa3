"""Finished rows as JSON lines: a bench that was broken off goes on from them, and several processes may append."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

Row = dict[str, Any]


def plain(settings: Any) -> Any:
    """Settings as they will be read again."""
    return json.loads(json.dumps(settings))


def finished(work: Path) -> Iterator[Row]:
    """The rows of the file; a last line that was cut off by a kill is ignored."""
    for line in work.read_text(encoding="utf-8").splitlines() if work.is_file() else []:
        try:
            yield json.loads(line)
        except ValueError:
            continue


def append(work: Path, row: Row) -> None:
    """Write a row behind those that the file holds, on its own line whatever a kill has cut off before it."""
    work.parent.mkdir(parents=True, exist_ok=True)
    with work.open("a+b") as file:
        if file.tell():
            file.seek(-1, os.SEEK_END)
            if file.read() != b"\n":
                file.write(b"\n")
        file.write(json.dumps(row).encode() + b"\n")


@dataclass(frozen=True)
class Rows:
    """The rows of a file that were made with the same settings; iterating reads the current content.

    Args:
        work: JSON lines, of these and of other settings.
        settings: what the numbers depend on, JSON-compatible.
    """

    work: Path
    settings: Any

    def __post_init__(self) -> None:
        object.__setattr__(self, "settings", plain(self.settings))

    def __iter__(self) -> Iterator[Row]:
        return (row for row in finished(self.work) if row["settings"] == self.settings)

    def add(self, row: Row) -> Row:
        """Append a row; returns it as it is read again."""
        whole = {**row, "settings": self.settings}
        append(self.work, whole)
        return whole


def packed(right: np.ndarray) -> str:
    """Which test rows are right (n,), as hexadecimal digits, eight rows a byte."""
    return np.packbits(right).tobytes().hex()


def unpacked(digits: str, count: int) -> np.ndarray:
    """The numbers that `packed` wrote, (count,): 1 or 0."""
    return np.unpackbits(np.frombuffer(bytes.fromhex(digits), dtype=np.uint8), count=count).astype(np.float64)
