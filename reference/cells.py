"""Escape text for a cell of a Markdown table."""

from __future__ import annotations


def cell(text: str) -> str:
    """A text on one line, without what would end the cell or begin a tag."""
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")
