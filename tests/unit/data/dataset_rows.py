"""Rows to make datasets of."""

from __future__ import annotations

import gzip
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

Read = TypeVar("Read")


def balanced(count: int = 20, labels: tuple[Any, ...] = ("good", "bad")) -> list[dict[str, Any]]:
    """So many distinct rows, labels taking turns."""
    return [{"text": f"sentence number {i}", "label": labels[i % len(labels)]} for i in range(count)]


def with_200_mb(path: Path, before: bytes, after: bytes) -> Path:
    """A gzip file whose content is 200 MB of one letter between the two."""
    with gzip.open(path, "wb", compresslevel=1) as stream:
        stream.write(before)
        for _ in range(200):
            stream.write(b"x" * 1_000_000)
        stream.write(after)
    return path


def peak_of(read: Callable[[], Read]) -> tuple[Read, int]:
    """What is read, and how many bytes that held at once."""
    tracemalloc.start()
    try:
        return read(), tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
