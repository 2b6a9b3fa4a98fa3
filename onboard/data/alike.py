"""Lookalike characters: typographic marks, and letters of other scripts that look like Latin ones.

A selection of Unicode's confusables (https://www.unicode.org/reports/tr39/): those that keyboards, word processors and
text recognition confuse.
"""

from __future__ import annotations

import unicodedata
from typing import Final

from onboard.data.invisible import visible

_MARKS: Final = {
    "'": "\u2018\u2019\u201a\u201b\u2032\u02b9\u02bb\u02bc\u02bd\u02c8\u0060\u00b4\uff07\u2035\u05f3\ua78c",
    '"': "\u201c\u201d\u201e\u201f\u2033\u2036\u00ab\u00bb\u02ba\u02ee\uff02\u05f4",
    "-": "\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58\ufe63\uff0d\u2043\u02d7\u30fc",
    "/": "\u2044\u2215\u29f8\uff0f",
    ".": "\u2024\uff0e\u06d4",
    ",": "\u201a\u060c\uff0c\u066b",
    ":": "\u2236\ua789\uff1a\u0589",
    "|": "\u01c0\u2223\uff5c",
    "*": "\u2217\u204e\uff0a",
    "~": "\u223c\u02dc\uff5e",
}
_SCRIPTS: Final = (  # letters and their Latin lookalikes
    (
        "\u0430\u0432\u0435\u0437\u043a\u043c\u043d\u043e\u0440\u0441\u0442\u0443\u0445\u0455\u0456\u0458\u0501\u051b\u051d\u04cf\u0461",
        "abe3kmhopctyxsijdqwlw",
    ),
    (
        "\u0410\u0412\u0415\u0417\u041a\u041c\u041d\u041e\u0420\u0421\u0422\u0423\u0425\u0405\u0406\u0408\u0500\u051a\u051c\u04c0",
        "ABE3KMHOPCTYXSIJDQWI",
    ),
    (
        "\u03b1\u03b2\u03b5\u03b6\u03b7\u03b9\u03ba\u03bc\u03bd\u03bf\u03c1\u03c4\u03c5\u03c7\u03f2\u03f3",
        "abeznikuvoptyxcj",
    ),
    ("\u0391\u0392\u0395\u0396\u0397\u0399\u039a\u039c\u039d\u039f\u03a1\u03a4\u03a5\u03a7", "ABEZHIKMNOPTYX"),
    ("\u0131\u0261\u0585\u057d\u0578\u0570", "igounh"),
)
_LETTERS: Final = {other: latin for others, latins in _SCRIPTS for other, latin in zip(others, latins, strict=True)}
_ALIKE: Final = str.maketrans({**_LETTERS, **{other: mark for mark, others in _MARKS.items() for other in others}})


def plain_letters(text: str) -> str:
    """Replace lookalikes by Latin letters and marks, and remove invisible characters.

    This is for comparing texts: texts in another script are changed, too.
    """
    if text.isascii():
        return text
    return unicodedata.normalize("NFKC", visible(text).translate(_ALIKE)).translate(_ALIKE)


def alike_points(text: str) -> tuple[str, ...]:
    """Return the lookalike characters of the text, in order of appearance, as U+2019."""
    return tuple(dict.fromkeys(f"U+{ord(mark):04X}" for mark in text if ord(mark) in _ALIKE))
