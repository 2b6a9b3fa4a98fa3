"""Shorten texts and names to one line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from onboard.data.problems import preview

_CHARACTERS: Final = 80  # of a row's texts, however many there are
_JOINT: Final = " | "


def preview_texts(texts: Sequence[str]) -> str:
    """Return the beginning of a text; for a pair, both beginnings at about the same total length."""
    return _JOINT.join(beginning(text, _CHARACTERS // len(texts)) for text in texts)


def beginning(text: str, characters: int) -> str:
    """Return the first characters of a text (at most 80), printable, and "…" if it is longer."""
    shown = preview(text)
    return shown if len(shown) <= characters else f"{shown[: characters - 1]}…"


def both_ends(name: str, characters: int) -> str:
    """Shorten a name in the middle, as names with the same beginning often differ at the end."""
    if len(name) <= characters:
        return name
    end = (characters - 1) // 2
    return f"{name[: characters - 1 - end]}…{name[len(name) - end :]}"
