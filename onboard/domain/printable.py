"""Make text safe for terminals: without escape sequences and characters that hide or reverse text."""

from __future__ import annotations

import json
import re
import unicodedata
from typing import Final

_KEPT: Final = "\n\u200c\u200d"  # the line feed, and the joiners that emoji and some scripts need
_DOUBTFUL: Final = re.compile(r"[^\n -~]")


def printable(content: str) -> str:
    """Remove control and formatting characters except the line feed and the joiners that emoji and some
    scripts need.
    """
    return _DOUBTFUL.sub(lambda match: "" if _steers(match[0]) else match[0], content)


def printable_json(document: str) -> str:
    """Return the JSON document with control and formatting characters as JSON escapes."""
    return _DOUBTFUL.sub(lambda match: json.dumps(match[0])[1:-1] if _steers(match[0]) else match[0], document)


def one_line(content: str) -> str:
    """Return the text as one line that is safe for terminals."""
    return printable(" ".join(content.split()))


def _steers(character: str) -> bool:
    return character not in _KEPT and unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp")
