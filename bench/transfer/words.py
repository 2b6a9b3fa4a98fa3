"""The words of docs/results/transfer.md: what methods are called."""

from __future__ import annotations

from typing import Final

from bench.transfer.cells import AUTO, BASELINES, RANDOM, SHOTS, TITLES, UNGATED
from bench.transfer.figures import BY_RULE, Key

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


def title(key: Key) -> str:
    """What a method is called, with its start or recipe."""
    return ", ".join(part for part in (METHODS[key.method], STARTS.get(key.start, key.start), key.recipe) if part)


def ungated() -> str:
    """The tasks that are shown and not judged."""
    return ", ".join(TITLES[task] for task in UNGATED)
