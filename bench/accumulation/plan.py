"""Which runs there are: task × rows × draw × how many tasks were learned before × readout or the whole default."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Final

from bench.heldout.plan import DRAWS, ArmRun

READOUT, DEFAULT = "readout", "default"
KINDS: Final[Mapping[str, str]] = {
    READOUT: "readout with the prior of so many tasks",
    DEFAULT: "the default, with the prior and the starts of so many tasks",
}
COUNTS: Final = (0, 16, 32, 64, 127)
ROWS: Final = (4, 16)


@dataclass(frozen=True)
class Wish:
    """The requested runs; no tasks means all."""

    kinds: Sequence[str] = (READOUT,)
    counts: Sequence[int] = COUNTS
    rows: Sequence[int] = ROWS
    draws: Sequence[int] = DRAWS
    tasks: Sequence[str] = ()


def arm_of(kind: str, count: int) -> str:
    """`readout-64`: its name as an arm."""
    return f"{kind}-{count}"


def parts_of(arm: str) -> tuple[str, int]:
    """Kind and number of earlier tasks of an arm."""
    kind, _, count = arm.rpartition("-")
    return kind, int(count)


def plan(tasks: Sequence[str], wish: Wish) -> list[ArmRun]:
    """The runs; those that share a base are together, and all arms of readouts of a cell."""
    own = [task for task in tasks if not wish.tasks or task in wish.tasks]
    runs = []
    if READOUT in wish.kinds:
        for rows, draw, task in product(wish.rows, wish.draws, own):
            runs += [ArmRun(task, rows, draw, arm_of(READOUT, count)) for count in wish.counts]
    if DEFAULT in wish.kinds:
        for draw, count, rows, task in product(wish.draws, wish.counts, wish.rows, own):
            runs.append(ArmRun(task, rows, draw, arm_of(DEFAULT, count)))
    return runs
