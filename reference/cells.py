"""Cells of Markdown tables."""

from __future__ import annotations


def cell(text: str) -> str:
    """Return a text on one line, with escapes for characters that would end the cell or begin a tag."""
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")
