"""Canary texts: possible inputs of tasks without rows, written for this repository, in `canaries.jsonl`.

One half is for the guard. The other half may be trained on, to keep earlier tasks in place during tuning. Judging by
texts that were trained on would underestimate forgetting.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Final, Literal

from onboard.model.encoding import TextEncoder

Use = Literal["guard", "tuning"]

_FILE: Final = Path(__file__).with_name("canaries.jsonl")


@cache
def canary_texts() -> tuple[tuple[str, str | None], ...]:
    """Return all canaries, single texts (a, None) and pairs (a, b), grouped by kind."""
    rows = [json.loads(line) for line in _FILE.read_text(encoding="utf-8").splitlines()]
    return tuple((row["text"], None) if "text" in row else (row["text_a"], row["text_b"]) for row in rows)


def canaries_of(*, pairs: bool) -> list[tuple[str, str | None]]:
    """Return the pairs, or the single texts."""
    return [text for text in canary_texts() if (text[1] is not None) == pairs]


def canary_ids(encoder: TextEncoder, use: Use) -> list[list[int]]:
    """Return token ids of the half for this use; both halves have texts of every kind.

    Args:
        encoder: encoder of the base.
        use: "guard" to judge by them, "tuning" to train on them.
    """
    return encoder.encode(canary_texts()[1 if use == "guard" else 0 :: 2])
