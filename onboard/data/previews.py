"""How texts and names of any length are shown in a line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from onboard.data.problems import preview

_CHARACTERS: Final = 80  # of a row's texts, however many there are
_JOINT: Final = " | "


def preview_texts(texts: Sequence[str]) -> str:
    """The beginning of a text; of a pair both beginnings, together about as long."""
    return _JOINT.join(beginning(text, _CHARACTERS // len(texts)) for text in texts)


def beginning(text: str, characters: int) -> str:
    """The text's first characters (80 at most), printable anywhere, and "…" in place of the rest."""
    shown = preview(text)
    return shown if len(shown) <= characters else f"{shown[: characters - 1]}…"


def both_ends(name: str, characters: int) -> str:
    """The name, or its beginning, "…" and its end: names that begin alike are often told apart by the end."""
    if len(name) <= characters:
        return name
    end = (characters - 1) // 2
    return f"{name[: characters - 1 - end]}…{name[len(name) - end :]}"
