"""Which runs there are: the later half of each series × draw × earlier tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Final

from bench.heldout.plan import ArmRun

ROWS: Final = 8  # of each task
ALONE, BASE, FEW, ALL = "alone", "base", "few", "all"
DEFAULT, DEFAULT_FEW, DEFAULT_ALL = "default", "default-few", "default-all"
ARMS: Final[Mapping[str, str]] = {
    ALONE: "readout of its rows alone", BASE: "readout with the prior of the base",
    FEW: f"readout with the prior of base and first half, {ROWS} rows a task",
    ALL: "readout with the prior of base and first half, all rows",
    DEFAULT: "the default in an empty home",
    DEFAULT_FEW: f"the default where the first half was learned, {ROWS} rows a task",
    DEFAULT_ALL: "the default where the first half was learned, all rows",
}  # fmt: skip
READOUTS: Final = (ALONE, BASE, FEW, ALL)
DEFAULTS: Final = (DEFAULT, DEFAULT_FEW, DEFAULT_ALL)
WITHOUT: Final = {FEW: BASE, ALL: BASE, DEFAULT_FEW: DEFAULT, DEFAULT_ALL: DEFAULT}  # the same without the first half


def plan(tasks: Sequence[str], draws: Sequence[int], arms: Sequence[str]) -> list[ArmRun]:
    """The runs; whole jobs after the readouts, those that share a home together."""
    series = dict.fromkeys(series_of(task) for task in tasks)
    readouts = [ArmRun(task, ROWS, draw, arm) for draw, task, arm in product(draws, tasks, READOUTS) if arm in arms]
    whole = [
        ArmRun(task, ROWS, draw, arm)
        for draw, name, arm in product(draws, series, DEFAULTS)
        if arm in arms
        for task in tasks
        if series_of(task) == name
    ]
    return readouts + whole


def series_of(task: str) -> str:
    """`product_reviews` of `product_reviews-06_health`."""
    return task.partition("-")[0]
