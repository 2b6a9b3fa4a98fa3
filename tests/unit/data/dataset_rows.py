"""Rows to make datasets of."""

from __future__ import annotations

from typing import Any


def balanced(count: int = 20, labels: tuple[Any, ...] = ("good", "bad")) -> list[dict[str, Any]]:
    """So many distinct rows, labels taking turns."""
    return [{"text": f"sentence number {i}", "label": labels[i % len(labels)]} for i in range(count)]
