"""A canary: a second version of an alias that answers a share of the alias's texts."""

from __future__ import annotations

import hashlib
import math
import re
from dataclasses import dataclass
from typing import Final

from onboard.errors import InputError

CANARY_ENDED: Final = "canary ended"  # reason in the history of an alias
_PERCENT: Final = re.compile(r"(\d{1,12}(?:\.\d{1,12})?) ?%", re.ASCII)
_NUMBER: Final = re.compile(r"\d+(?:\.\d+)?|\.\d+", re.ASCII)
_DIGEST_BYTES: Final = 7  # 56 bits; a share is a double with 53
_SHOWN_CHARACTERS: Final = 40


@dataclass(frozen=True, slots=True)
class Canary:
    """The canary of an alias.

    Args:
        share: fraction of the texts that it answers, above 0 and below 1.
    """

    version: int
    share: float

    def answers(self, task: str, alias: str, text_a: str, text_b: str | None) -> bool:
        """Return whether the canary answers a text or a pair, rather than the alias's version.

        The choice depends only on task, alias, texts and share. A greater share keeps the texts of a smaller one.
        """
        key = "\0".join((task, alias, text_a, *(() if text_b is None else (text_b,))))
        digest = hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()[:_DIGEST_BYTES]
        return int.from_bytes(digest) < self.share * 256**_DIGEST_BYTES


def require_share(share: float) -> float:
    """Return a share of at least 0, which ends a canary, and below 1. Raises InputError."""
    if not math.isfinite(share) or not 0 <= share <= 1:
        raise InputError("share-out-of-range", field="share", given=f"{share:g}")
    if share == 1:
        raise InputError("share-of-everything", field="share")
    return share


def parse_share(text: str) -> float:
    """Return the fraction of a percentage: 0.1 for "10%". Raises InputError, also if the percent sign is missing."""
    stripped = text.strip()
    percent = _PERCENT.fullmatch(stripped)
    if percent is None:
        if _NUMBER.fullmatch(stripped):
            raise InputError("share-without-percent", field="share", given=stripped[:_SHOWN_CHARACTERS])
        raise InputError("share-not-a-percentage", field="share", given=stripped[:_SHOWN_CHARACTERS])
    if float(percent[1]) > 100:
        raise InputError("share-out-of-range", field="share", given=stripped[:_SHOWN_CHARACTERS])
    return require_share(float(percent[1]) / 100)


def share_text(share: float) -> str:
    """Return a share as a percentage: "10%" for 0.1."""
    return f"{100 * share:.10g}%"


def alias_tag(version: int, canary: int | None = None, share: float | None = None) -> str:
    """Return a text that changes with the version or the canary of an alias: v3, or v3+v4:0.1 with a canary."""
    return f"v{version}" if canary is None else f"v{version}+v{canary}:{share!r}"
