"""The arms: what answers from the words of the labels alone."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import Final

from bench.heldout.plan import ArmRun

ONBOARD, DESCRIBED, WORDS, NLI, CHANCE = "onboard", "onboard-described", "words", "nli", "chance"
MINILM, ABOUT, MINILM_DESCRIBED = "minilm", "minilm-about", "minilm-described"
ARMS: Final[Mapping[str, str]] = {
    ONBOARD: "Onboard: label words and the prior", DESCRIBED: "the same, with a description of each label",
    WORDS: "Onboard without the prior", NLI: "entailment of \"This text is about …\", by the MNLI of the base",
    MINILM: "MiniLM's cosine with the label words", ABOUT: "MiniLM's cosine with \"This text is about …\"",
    MINILM_DESCRIBED: "MiniLM's cosine with label words and description", CHANCE: "chance",
}  # fmt: skip
OF_READOUT: Final = (ONBOARD, DESCRIBED, WORDS)
OF_ENCODER: Final = (*OF_READOUT, NLI)
OF_PRIOR: Final = (ONBOARD, DESCRIBED)
OF_TEACHER: Final = (MINILM, ABOUT, MINILM_DESCRIBED)
OF_DESCRIPTIONS: Final = (DESCRIBED, MINILM_DESCRIBED)


def plan(tasks: Sequence[str], arms: Sequence[str], described: Container[str]) -> list[ArmRun]:
    """A run for each arm of each task; nothing is drawn. Tasks that are not described have no arm with descriptions."""
    return [
        ArmRun(task, 0, 0, arm)
        for task in tasks
        for arm in ARMS
        if arm in arms and (task in described or arm not in OF_DESCRIPTIONS)
    ]
