"""The words and numbers of docs/results/transfer.md: what methods are called, and how figures are shown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from bench.transfer.cells import AUTO, BASELINES, RANDOM, SHOTS, TITLES, UNGATED
from bench.transfer.figures import BY_RULE, Figure, Key

METHODS: Final = {
    "embedding": "embedding only", "hypernetwork": "hypernetwork + embedding",
    BY_RULE: "what `--tune-hypernetwork auto` publishes", "full": "full fine-tuning",
    "adapters": "Adapters†", "lora": "LoRA, r = 8", "prompt": "prompt tuning", "tfidf": "TF-IDF + logistic regression",
}  # fmt: skip
STARTS: Final = {AUTO: "auto", "hand": "hand-picked", RANDOM: "random"}
OURS: Final = (Key("embedding", AUTO), Key("hypernetwork", AUTO))
RULED: Final = Key(BY_RULE, AUTO)
OTHERS: Final = tuple(Key(method) for method in BASELINES)
ASCENDING: Final = tuple(sorted(SHOTS))
NONE: Final = "–"


def title(key: Key) -> str:
    """What a method is called, with its start or recipe."""
    return ", ".join(part for part in (METHODS[key.method], STARTS.get(key.start, key.start), key.recipe) if part)


def ungated() -> str:
    """The tasks that are shown and not judged."""
    return ", ".join(TITLES[task] for task in UNGATED)


def table_row(*cells: object) -> str:
    """One row of a table."""
    return f"| {' | '.join(map(str, cells))} |"


def joined(counts: Sequence[int]) -> str:
    """ "16 and 100"."""
    return " and ".join(map(str, counts))


def counted(count: int, what: str) -> str:
    """ "1 cell", "2 cells"."""
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def plain(figure: Figure | None) -> str:
    """The value alone."""
    return f"{figure.value:.1f}" if figure else NONE


def with_interval(figure: Figure | None) -> str:
    """The value with its interval."""
    return figure.shown if figure else NONE


def signed(figure: Figure | None, decimals: int = 1) -> str:
    """A difference with its sign and interval."""
    return f"{figure.value:+.{decimals}f} ({figure.low:+.1f} to {figure.high:+.1f})" if figure else NONE
