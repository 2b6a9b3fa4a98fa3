"""The results of trainings: scores by task, and bytes a task with the shared part spread over many tasks."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from bench.harness.rows import Row
from bench.heldout.figures import ACCURACY, Mean, Part, Results
from bench.heldout.plan import ArmRun
from bench.methods.choosing import chosen
from bench.methods.plan import ARMS, DEFAULT

AUTO: Final = "auto"
SPREAD: Final = (1, 10, 100, 1000)  # tasks that share a hypernetwork


@dataclass(frozen=True)
class Scores:
    """The trainings of a suite with so many rows, and what `auto` makes of them.

    Args:
        rows: by run, those of `auto` among them.
        count: labelled rows.
    """

    rows: Mapping[ArmRun, Row]
    count: int

    @classmethod
    def of(cls, measured: Mapping[ArmRun, Row], count: int) -> Scores:
        """With `auto` next to every cell that tells what it would have tried."""
        own = {run: row for run, row in measured.items() if run.rows == count}
        by_rule = {ArmRun(*cell[:3], AUTO, cell[3]): one.row for cell, one in chosen(own).items()}
        return cls({**own, **by_rule}, count)

    @property
    def arms(self) -> list[str]:
        """Those that have a run."""
        present = {run.arm for run in self.rows}
        return [arm for arm in (AUTO, *ARMS) if arm in present]

    @property
    def tasks(self) -> list[str]:
        """Those that have a run, in the order of the plan."""
        return list(dict.fromkeys(run.task for run in self.rows))

    @property
    def cells(self) -> int:
        """How many draws of tasks have a run."""
        return len({run.cell for run in self.rows})

    def common(self, arms: Sequence[str]) -> frozenset[str]:
        """Tasks that all of these arms were measured on."""
        return frozenset(task for task in self.tasks if all(self.of_task(arm, task) is not None for arm in arms))

    def of_task(self, arm: str, task: str) -> float | None:
        """Mean accuracy over draws, per cent; None where it was not measured."""
        own = [row["accuracy"] for run, row in self.rows.items() if (run.arm, run.task) == (arm, task)]
        return statistics.fmean(own) if own else None

    def mean(self, arm: str, tasks: frozenset[str]) -> Mean | None:
        """Over these tasks, with its interval over tasks."""
        return Results(self.rows).mean(Part(self.count, tasks), arm)

    def gain(self, arm: str) -> Mean | None:
        """Of `auto` over an arm, with its interval over the tasks that both were measured on."""
        return Mean.of(list(self.gains(arm).values()))

    def gains(self, arm: str) -> dict[str, float]:
        """The same by task, on the draws that both were measured on."""
        return Results(self.rows).by_task(Part(self.count, self.common([AUTO, arm])), AUTO, ACCURACY, arm)

    def draws(self, arm: str) -> int:
        """How many draws of a task an arm was measured on, at most."""
        return max(Counter(run.task for run in self.rows if run.arm == arm).values())

    def stored(self, arm: str, shared: int, tasks: int) -> float | None:
        """Mean bytes a task; of the default with its part of the hypernetwork, which so many tasks share."""
        own = [row["stored_bytes"] for run, row in self.rows.items() if run.arm == arm and "stored_bytes" in row]
        if not own:
            return None
        return statistics.fmean(own) + (shared / tasks if arm == DEFAULT else 0.0)


def regret(measured: Mapping[ArmRun, Row], errors: float) -> tuple[float, float, int] | None:
    """The loss of `auto`, points on the mean over cells, against the best arm of each cell and against the arm that is
    best on the mean, and of how many cells.

    Args:
        measured: rows by run.
        errors: standard errors within which fewer bytes decide.
    """
    by_rule = chosen(measured, errors)
    arms = [arm for arm in ARMS if all(_accuracy(measured, cell, arm) is not None for cell in by_rule)]
    family = [arm for arm in arms if arm != "tfidf"]
    if not by_rule or not family:
        return None
    own = {cell: one.row["accuracy"] for cell, one in by_rule.items()}
    table = {arm: {cell: _accuracy(measured, cell, arm) or 0.0 for cell in own} for arm in family}
    best = [max(table[arm][cell] for arm in family) - own[cell] for cell in own]
    single = max(statistics.fmean(of_arm.values()) for of_arm in table.values())
    return statistics.fmean(best), single - statistics.fmean(own.values()), len(own)


def _accuracy(measured: Mapping[ArmRun, Row], cell: tuple[str, int, int, str], arm: str) -> float | None:
    row = measured.get(ArmRun(*cell[:3], arm, cell[3]))
    return None if row is None else float(row["accuracy"])
