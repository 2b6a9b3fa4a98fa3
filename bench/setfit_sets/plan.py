"""The sets, what SetFit's authors publish of them (github.com/huggingface/setfit, `scripts/setfit` and its
`final_results`), and which runs there are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Final

from bench.heldout.plan import DEFAULT, READOUT, SETFIT, ArmRun

SETS: Final[Mapping[str, tuple[str, str]]] = {
    "cr": ("CR", "accuracy"), "ag_news": ("AG News", "accuracy"), "emotion": ("emotion", "accuracy"),
    "sst5": ("SST-5", "accuracy"), "enron_spam": ("Enron spam", "accuracy"), "amazon_cf": ("Amazon CF", "mcc"),
}  # fmt: skip
SHOTS: Final = (8, 64)  # rows of each class
ARMS: Final = (DEFAULT, READOUT, SETFIT)
MINILM, MPNET, FROZEN = "SetFit, MiniLM-L6", "SetFit, mpnet", "frozen mpnet + logistic regression"
PUBLISHED: Final[Mapping[str, Mapping[str, Mapping[int, float]]]] = {  # by method, set and rows of each class
    FROZEN: {
        "cr": {8: 84.2, 64: 88.2}, "ag_news": {8: 74.3, 64: 84.4}, "emotion": {8: 37.8, 64: 50.8},
        "sst5": {8: 36.7, 64: 42.2}, "amazon_cf": {8: 21.8, 64: 40.8},
    },
    MINILM: {
        "cr": {8: 71.6}, "ag_news": {8: 83.1}, "emotion": {8: 39.1}, "sst5": {8: 29.8}, "amazon_cf": {8: 19.7},
    },
    MPNET: {
        "cr": {8: 88.5, 64: 90.4}, "ag_news": {8: 82.9, 64: 88.0}, "emotion": {8: 48.8, 64: 76.2},
        "sst5": {8: 43.6, 64: 51.9}, "amazon_cf": {8: 40.3, 64: 62.0},
    },
}  # fmt: skip


def present_sets(folder: Path) -> list[str]:
    """The sets that are in the folder."""
    return [name for name in SETS if (folder / name / "train.jsonl.gz").is_file()]


def plan(classes: Mapping[str, int], shots: Sequence[int], draws: Sequence[int], arms: Sequence[str]) -> list[ArmRun]:
    """The runs; `classes`: how many labels each set has. A run counts rows in all."""
    return [
        ArmRun(name, count * classes[name], draw, arm)
        for count, draw, name, arm in product(shots, draws, classes, ARMS)
        if arm in arms
    ]
