"""Invisible characters: Unicode's Default_Ignorable_Code_Point, such as zero-width spaces and soft hyphens."""

from __future__ import annotations

import re
from typing import Final

_INVISIBLE: Final = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f"
    "\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)


def visible(text: str) -> str:
    """Remove them from the text."""
    return text if text.isascii() else _INVISIBLE.sub("", text)


def code_points(text: str) -> tuple[str, ...]:
    """Return those of the text, in order of appearance, as U+200B."""
    return tuple(dict.fromkeys(f"U+{ord(character):04X}" for character in _INVISIBLE.findall(text)))
