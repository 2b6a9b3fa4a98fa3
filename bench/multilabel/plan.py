"""The arms, and which runs there are: task × rows × draw × arm."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Final

from bench.heldout.plan import AS_THEY_COME, ArmRun
from bench.transfer.recipes import USUAL

OURS, ROWS_ALONE, TFIDF, MINILM, COMMONEST, LORA = "ours", "rows-alone", "tfidf", "minilm", "commonest", "lora"
ARMS: Final[Mapping[str, str]] = {
    OURS: "the default: a readout with label words and prior", ROWS_ALONE: "the readout of the rows alone",
    MINILM: "MiniLM + one-vs-rest logistic regression", TFIDF: "TF-IDF + one-vs-rest logistic regression",
    COMMONEST: "the most frequent set of labels", LORA: "LoRA, r = 8, of the same backbone, with independent scores",
}  # fmt: skip
OF_ENCODER: Final = (OURS, ROWS_ALONE)
ROWS: Final = (32, 100, 500)
DRAWS: Final = (0, 1)
LORA_ROWS: Final = (32, 100)  # it is trained by gradients, and its target concerns few rows
LORA_RECIPE: Final = "lora", USUAL  # of `bench.transfer.recipes`


def plan(tasks: Sequence[str], arms: Sequence[str], rows: Sequence[int] = ROWS) -> list[ArmRun]:
    """The runs, all arms of a draw one after the other."""
    return [
        ArmRun(task, count, draw, arm, AS_THEY_COME)
        for task, count, draw in product(tasks, rows, DRAWS)
        for arm in ARMS if arm in arms and (arm != LORA or count in LORA_ROWS)
    ]  # fmt: skip
