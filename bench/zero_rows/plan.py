"""The arms: what answers from the words of the labels alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from bench.heldout.plan import ArmRun

BOTH, PRIOR, WORDS, MINILM, ABOUT, CHANCE = "both", "prior", "words", "minilm", "minilm-about", "chance"
ARMS: Final[Mapping[str, str]] = {
    BOTH: "the prior, and the label words as rows", PRIOR: "the prior", WORDS: "the label words as rows",
    MINILM: "MiniLM's cosine with the label words", ABOUT: "MiniLM's cosine with \"This text is about …\"",
    CHANCE: "chance",
}  # fmt: skip
OF_ENCODER: Final = (BOTH, PRIOR, WORDS)
OF_PRIOR: Final = (BOTH, PRIOR)
OF_TEACHER: Final = (MINILM, ABOUT)


def plan(tasks: Sequence[str], arms: Sequence[str]) -> list[ArmRun]:
    """A run for each arm of each task; nothing is drawn."""
    return [ArmRun(task, 0, 0, arm) for task in tasks for arm in ARMS if arm in arms]
