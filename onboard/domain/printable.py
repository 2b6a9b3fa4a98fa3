"""Texts that steer no terminal, whoever wrote them: no escape sequences, no signs that hide text or turn it round."""

from __future__ import annotations

import json
import re
import unicodedata
from typing import Final

_KEPT: Final = "\n\u200c\u200d"  # the line feed, and the joiners that emoji and scripts are written with
_DOUBTFUL: Final = re.compile(r"[^\n -~]")


def printable(content: str) -> str:
    """The text without what could steer a terminal: control and formatting characters, but for the line feed and the
    joiners that emoji and scripts are written with."""
    return _DOUBTFUL.sub(lambda match: "" if _steers(match[0]) else match[0], content)


def printable_json(document: str) -> str:
    """The same JSON document, with what could steer a terminal written as JSON's escapes."""
    return _DOUBTFUL.sub(lambda match: json.dumps(match[0])[1:-1] if _steers(match[0]) else match[0], document)


def one_line(content: str) -> str:
    """The text as a line that steers no terminal and cannot pass for several."""
    return printable(" ".join(content.split()))


def _steers(character: str) -> bool:
    return character not in _KEPT and unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp")
