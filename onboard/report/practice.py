"""Describe a practice task of a base from its name, which contains kind and label words."""

from __future__ import annotations

import re
from typing import Final

_KINDS: Final = {
    "form": "how a text is phrased",
    "topics": "what a text is about",
    "pairs": "how two texts differ",
    "style": "how a text is written or where it is from",
    "union": "tasks of one kind together",
}
_OF_SOURCES: Final = {"joined": "long texts of", "extended": "longer texts of", "joint": "together"}
_MORE: Final = re.compile(
    r"\d+|[0-9a-f]{8}|all|any|only|cut|ends|steps|thirds|merged|about|passage|few|mixed|same|similar"
)
_MOST_WORDS: Final = 4  # of the labels


def practice_task(name: str) -> str:
    """Return a line such as "a practice task of the base: what a text is about (films, sport, food)".

    Args:
        name: of an anchor, `topics-all-40-films-sport-food`.
    """
    kind, *rest = name.split("-")
    if not rest:
        return "a practice task of the base"
    if kind in _OF_SOURCES:
        count = 2 if kind == "joint" else 1
        sources, rest = " and ".join(rest[:count]), rest[count:]
        what = f"{sources} {_OF_SOURCES[kind]}" if kind == "joint" else f"{_OF_SOURCES[kind]} {sources}"
    else:
        what = _KINDS.get(kind, f"{kind} with other words")
    words = [word.replace("_", " ") for word in rest if not _MORE.fullmatch(word)]
    more = ", …" if len(words) > _MOST_WORDS else ""
    named = f" ({', '.join(words[:_MOST_WORDS])}{more})" if words else ""
    return f"a practice task of the base: {what}{named}"
