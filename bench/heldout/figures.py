"""The results of the runs: means over tasks of means over draws, and paired differences, with intervals over tasks."""

from __future__ import annotations

import statistics
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from bench.harness.intervals import seeds_interval
from bench.harness.page import NONE
from bench.harness.rows import Row
from bench.heldout.plan import ARMS, RARE, ArmRun

ACCURACY, MACRO_F1, LOSS, CALIBRATION = "accuracy", "macro_f1", "log_loss", "calibration"


@dataclass(frozen=True)
class Mean:
    """A mean over tasks with its 95% interval (Student's t); without width of a single task."""

    value: float
    low: float
    high: float
    tasks: int

    @classmethod
    def of(cls, values: Sequence[float]) -> Mean | None:
        """Of each task's value; None without a task."""
        return cls(*seeds_interval(values), len(values)) if values else None


@dataclass(frozen=True)
class Part:
    """Some of the runs: those of so many rows, sampled so, of some tasks."""

    rows: int
    tasks: frozenset[str]
    sampling: str = "balanced"

    def among(self, tasks: Collection[str]) -> Part:
        """The same, of no other tasks than these."""
        return Part(self.rows, self.tasks & frozenset(tasks), self.sampling)


class Results:
    """The finished runs.

    Args:
        rows: by run.
    """

    def __init__(self, rows: Mapping[ArmRun, Row]) -> None:
        self.rows = rows
        self._by_arm: dict[tuple[str, int, str], dict[str, dict[int, Row]]] = {}
        for run, row in rows.items():
            of_arm = self._by_arm.setdefault((run.arm, run.rows, run.sampling), {})
            of_arm.setdefault(run.task, {})[run.draw] = row

    @property
    def tasks(self) -> dict[str, str]:
        """Family of every task that has a run, sorted by family."""
        of_task = {run.task: str(row["family"]) for run, row in self.rows.items()}
        return dict(sorted(of_task.items(), key=lambda pair: (pair[1], pair[0])))

    @property
    def imbalanced(self) -> frozenset[str]:
        """Tasks with a rare label."""
        return frozenset(run.task for run, row in self.rows.items() if row["rarest"] < RARE)

    @property
    def in_base(self) -> frozenset[str]:
        """Tasks of whose family the base has a source."""
        return frozenset(run.task for run, row in self.rows.items() if row.get("in_base"))

    @property
    def arms(self) -> list[str]:
        """Arms that have a run."""
        present = {run.arm for run in self.rows}
        return [arm for arm in ARMS if arm in present]

    def part(self, rows: int, sampling: str = "balanced") -> Part:
        """The runs of all tasks with so many rows."""
        return Part(rows, frozenset(self.tasks), sampling)

    def by_task(self, part: Part, arm: str, metric: str, other: str | None = None) -> dict[str, float]:
        """The metric of each task, a mean over draws; less that of another arm on the draws that both have."""
        values = {}
        for task in sorted(part.tasks):  # a page is the same however often it is written
            own, others = (self._values(part, task, name, metric) for name in (arm, other or arm))
            draws = own.keys() & others.keys()
            if draws:
                values[task] = statistics.fmean(own[draw] - (others[draw] if other else 0.0) for draw in draws)
        return values

    def mean(self, part: Part, arm: str, metric: str = ACCURACY) -> Mean | None:
        """Over tasks; None where nothing is measured."""
        return Mean.of(list(self.by_task(part, arm, metric).values()))

    def gain(self, part: Part, arm: str, other: str, metric: str = ACCURACY) -> Mean | None:
        """Of an arm over another, over the tasks that both have; None where there are none."""
        return Mean.of(list(self.by_task(part, arm, metric, other).values()))

    def over(self, parts: Iterable[Part], arm: str, other: str, metric: str = ACCURACY) -> Mean | None:
        """The gain of several parts: each task counts once, with its mean over those that have it."""
        gains: dict[str, list[float]] = {}
        for part in parts:
            for task, gain in self.by_task(part, arm, metric, other).items():
                gains.setdefault(task, []).append(gain)
        return Mean.of([statistics.fmean(of_task) for of_task in gains.values()])

    def of_arm(self, part: Part, arm: str) -> list[Row]:
        """The rows of an arm."""
        by_task = self._by_arm.get((arm, part.rows, part.sampling), {})
        return [row for task, draws in by_task.items() if task in part.tasks for row in draws.values()]

    def _values(self, part: Part, task: str, arm: str, metric: str) -> dict[int, float]:
        draws = self._by_arm.get((arm, part.rows, part.sampling), {}).get(task, {})
        return {draw: float(row[metric]) for draw, row in draws.items() if row.get(metric) is not None}


def plain(mean: Mean | None, digits: int = 1) -> str:
    """The value alone."""
    return NONE if mean is None else f"{mean.value:.{digits}f}"


def signed(mean: Mean | None, digits: int = 1) -> str:
    """A difference with its sign, and its interval where there is one."""
    if mean is None:
        return NONE
    reach = f" ({mean.low:+.{digits}f} to {mean.high:+.{digits}f})" if mean.tasks > 1 else ""
    return f"{mean.value:+.{digits}f}{reach}"
