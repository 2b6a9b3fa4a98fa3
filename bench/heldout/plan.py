"""Which runs there are: task × number of rows × draw × arm, those that the numbers depend on first."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, product
from typing import Final

DEFAULT, EMBEDDING, RANDOM, READOUT = "default", "embedding", "random", "readout"
MINILM, ENCODER, TFIDF, BALANCED = "minilm", "encoder", "tfidf", "tfidf_balanced"
SETFIT, MINILM_READOUT = "setfit", "minilm-readout"
ARMS: Final[Mapping[str, str]] = {
    DEFAULT: "the default, as it is published", EMBEDDING: "its embedding alone", RANDOM: "embedding from random start",
    READOUT: "readout alone", "lora": "LoRA, r = 8", "full": "full fine-tuning",
    SETFIT: "SetFit on MiniLM", MINILM_READOUT: "MiniLM read by our readout",
    MINILM: "MiniLM features + logistic regression", ENCODER: "our encoder's features + logistic regression",
    TFIDF: "TF-IDF + logistic regression", BALANCED: "balanced TF-IDF + logistic regression",
}  # fmt: skip
TRAINED: Final = ("lora", "full")  # other ways to train the same backbone
LEARNED: Final = (DEFAULT, EMBEDDING, RANDOM)  # of a job
READ_OUT: Final = (READOUT, MINILM_READOUT)  # in closed form; of some rows there is none
OF_TEACHER: Final = (MINILM, MINILM_READOUT)
CHEAP: Final = (ENCODER, MINILM, TFIDF, READOUT)  # what judges an encoder in minutes
ROWS: Final = (16, 32, 4, 100)
DRAWS: Final = (0, 1, 2)
RARE: Final = 0.2  # share of a label below which a task counts as imbalanced
AS_THEY_COME: Final = "natural"  # draws that are not balanced, of imbalanced tasks
NATURAL_ROWS: Final = 100
MANY_ROWS: Final = 8  # a label that has more in training is to be answered now and then
NATURAL_ARMS: Final = (DEFAULT, READOUT, TFIDF, BALANCED)


@dataclass(frozen=True, order=True)
class ArmRun:
    """One arm on one draw of a task's rows.

    Args:
        task: that no base has seen.
        rows: labelled rows in all.
        draw: seed of the draw of the rows, and of the training.
        arm: one of ARMS.
        sampling: "balanced" labels as far as there are rows, or "natural", as rows come.
    """

    task: str
    rows: int
    draw: int
    arm: str
    sampling: str = "balanced"

    @property
    def cell(self) -> tuple[str, int, int, str]:
        """The key of rows that all arms share."""
        return self.task, self.rows, self.draw, self.sampling


@dataclass(frozen=True)
class Wish:
    """The requested runs; empty means everything."""

    tasks: tuple[str, ...] = ()
    arms: tuple[str, ...] = ()
    rows: tuple[int, ...] = ()
    draws: tuple[int, ...] = DRAWS

    def takes(self, run: ArmRun) -> bool:
        """Whether the run is requested."""
        return (
            (not self.tasks or run.task in self.tasks)
            and (not self.arms or run.arm in self.arms)
            and (not self.rows or run.rows in self.rows)
        )


def plan(rarest: Mapping[str, float], wish: Wish) -> list[ArmRun]:
    """The runs, cell by cell.

    Args:
        rarest: share of the rarest label of each task; 1 of a regression.
        wish: the requested runs.
    """
    runs = [*_balanced(rarest, wish.draws), *_natural(rarest, wish.draws)]
    return [run for run in runs if wish.takes(run)]


def _balanced(rarest: Mapping[str, float], draws: Sequence[int]) -> Iterator[ArmRun]:
    for rows, draw, task in product(ROWS, draws, rarest):
        yield from (ArmRun(task, rows, draw, arm) for arm in ARMS if _is_for(arm, rarest[task]))


def _is_for(arm: str, rarest: float) -> bool:
    """Whether an arm can learn a task whose rarest label has this share; 1 of a regression."""
    return rarest < {BALANCED: RARE, SETFIT: 1.0}.get(arm, math.inf)


def _natural(rarest: Mapping[str, float], draws: Sequence[int]) -> Iterator[ArmRun]:
    for draw, task in product(draws, (task for task, share in rarest.items() if share < RARE)):
        yield from (ArmRun(task, NATURAL_ROWS, draw, arm, AS_THEY_COME) for arm in NATURAL_ARMS)


def listed(words: str) -> tuple[str, ...]:
    """The list of a command line: "A,B"."""
    return tuple(word for word in words.split(",") if word)


def numbers(words: str) -> tuple[int, ...]:
    """The numbers that a command line lists: "4,16"."""
    return tuple(map(int, listed(words)))


def part_of(runs: Sequence[ArmRun], index: int, count: int) -> list[ArmRun]:
    """Every `count`-th group of runs of one cell, from the `index`-th (from 1) on: cells are read and learned once."""
    groups = [list(group) for _, group in groupby(runs, key=lambda run: run.cell)]
    return [run for group in groups[index - 1 :: count] for run in group]
