"""Results in points (per cent of test rows), with T tasks and R[t,i] the accuracy on task i after task t:

- average accuracy: mean of R[T,i] over i;
- backward transfer, BWT: mean of R[T,i] − R[i,i] over i < T (Lopez-Paz and Ranzato, arXiv 1706.08840);
- forward transfer, FWT: mean of R[i−1,i] − b_i over i > 1 (the same), where R[i−1,i] is that of the start which the
  probe chooses, before any training, and b_i that of a random embedding on the base as it was shipped;
- forgetting: mean over i < T of the largest R[t,i] before the end, less R[T,i] (Chaudhry et al., arXiv 1801.10112);
- worst task: the smallest R[T,i] − R[i,i].

Orders (with separate draws) and test rows are crossed random effects, as draws and rows are in
`bench.harness.figures`: a task's test rows are the same in all orders.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from bench.harness.figures import LEVEL, Figure, figure, figures
from bench.harness.holm import holm_adjusted
from bench.harness.rows import Row, unpacked
from bench.stream.methods import FROZEN, LORA
from bench.stream.sharing import Steps, Stream

_N = 0  # the figures there are by task and n; here n is always the same


class Drop(NamedTuple):
    """The result of a task from when it was learned to the end.

    Args:
        change: R[T,i] − R[i,i], over the orders in which it is not the last one.
        p_value: that it did not lose, one-sided, after Holm over the tasks.
    """

    change: Figure
    p_value: float

    @property
    def worse(self) -> bool:
        """Whether the task is significantly worse."""
        return self.p_value < LEVEL

    def detectable(self, tasks: int) -> float:
        """How large a drop of the task, one of so many, would be found in four of five cases, in points.

        By the first step of Holm's correction, which is its sharpest.
        """
        normal = NormalDist()
        error = (self.change.high - self.change.low) / (2.0 * normal.inv_cdf(1.0 - LEVEL / 2))
        return error * (normal.inv_cdf(1.0 - LEVEL / tasks) + normal.inv_cdf(0.8))


@dataclass(frozen=True)
class Results:
    """The finished steps of all streams.

    Args:
        steps: by stream.
        tasks: names, in each order.
    """

    steps: Steps
    tasks: Sequence[Sequence[str]]

    @property
    def names(self) -> list[str]:
        """The tasks, as they were named."""
        return sorted(self.tasks[0]) if self.tasks else []

    def whole(self, method: str) -> bool:
        """Whether every stream of the method is at its end."""
        return all(len(self.rows(method, order)) == len(tasks) for order, tasks in enumerate(self.tasks))

    def rows(self, method: str, order: int) -> Sequence[Row]:
        """The steps of a stream that are there."""
        return self.steps.get(Stream(order, method), [])

    def matrix(self, method: str, order: int) -> np.ndarray:
        """R (t, T) of the t steps that are there, in per cent; NaN for tasks that were not learned yet."""
        rows = self.rows(method, order)
        accuracies = np.full((len(rows), len(self.tasks[order])), np.nan)
        for after, row in enumerate(rows):
            accuracies[after, : after + 1] = [100.0 * right(row, place).mean() for place in range(after + 1)]
        return accuracies

    def accuracy(self, method: str) -> Figure:
        """Average accuracy at the end. All of these need a method that is `whole`."""
        return figure(self._cells(method, lambda rows, place: right(rows[-1], place)))

    def gain(self, method: str, other: str) -> Figure:
        """Its average accuracy less that of another method, on the same rows."""
        one, two = (self._cells(name, lambda rows, place: right(rows[-1], place)) for name in (method, other))
        return figure({place: one[place] - two[place] for place in one})

    def backward(self, method: str) -> Figure:
        """BWT."""
        return self._over_others(self._cells(method, _change))

    def forgetting(self, method: str) -> Figure:
        """How far tasks are below their best."""
        return self._over_others(self._cells(method, _below_best))

    def forward(self, method: str) -> Figure | None:
        """FWT; None for LoRA, which starts every task from the same."""
        if method == LORA or not self.whole(FROZEN):
            return None

        def lead(order: int, place: int) -> np.ndarray:
            start = unpacked(self.rows(method, order)[place]["start"], self._count(order, place))
            random = unpacked(self.rows(FROZEN, order)[place]["random"], self._count(order, place))
            leads: np.ndarray = (start - random) * (place > 0)
            return leads

        return self._over_others(self._by_task(lead))

    def learned(self, method: str) -> Figure:
        """Mean accuracy on each task right after it was learned."""
        return figure(self._cells(method, lambda rows, place: right(rows[place], place)))

    def drops(self, method: str) -> dict[str, Drop]:
        """The result of each task."""
        cells = {}
        for name in self.names:
            orders = [order for order, tasks in enumerate(self.tasks) if tasks[-1] != name]
            of = [_change(self.rows(method, order), list(self.tasks[order]).index(name)) for order in orders]
            if of:
                cells[name, _N] = np.stack(of)
        changes = figures(cells)
        adjusted = holm_adjusted([changes[place].below for place in changes])
        return {name: Drop(changes[name, _N], p) for (name, _), p in zip(changes, adjusted, strict=True)}

    def at_the_end(self, method: str) -> dict[str, Figure]:
        """R[T,i] of each task over the orders."""
        ends = figures(self._cells(method, lambda rows, place: right(rows[-1], place)))
        return {name: end for (name, _), end in ends.items()}

    def seconds(self, method: str) -> dict[str, float]:
        """Mean seconds a task by part; testing is left out."""
        rows = [row for order in range(len(self.tasks)) for row in self.rows(method, order)]
        parts = dict.fromkeys(part for row in rows for part in row["seconds"] if part != "test")
        return {part: float(np.mean([row["seconds"].get(part, 0.0) for row in rows])) for part in parts}

    def _cells(self, method: str, of: Callable[[Sequence[Row], int], np.ndarray]) -> dict[tuple[str, int], np.ndarray]:
        return self._by_task(lambda order, place: of(self.rows(method, order), place))

    def _by_task(self, of: Callable[[int, int], np.ndarray]) -> dict[tuple[str, int], np.ndarray]:
        """Orders × test rows (S, r) of each task."""
        return {
            (name, _N): np.stack([of(order, list(tasks).index(name)) for order, tasks in enumerate(self.tasks)])
            for name in self.names
        }

    def _over_others(self, cells: dict[tuple[str, int], np.ndarray]) -> Figure:
        """The mean over T − 1 tasks of each order, where one of the T has nothing to say and is 0."""
        mean, share = figure(cells), len(self.names) / max(1, len(self.names) - 1)
        return replace(mean, value=share * mean.value, low=share * mean.low, high=share * mean.high)

    def _count(self, order: int, place: int) -> int:
        count: int = self.rows(FROZEN, order)[place]["rows"][place]
        return count


def right(row: Row, place: int) -> np.ndarray:
    """Which test rows of the task at that place are right after a step (r,): 1 or 0."""
    return unpacked(row["correct"][place], row["rows"][place])


def _change(rows: Sequence[Row], place: int) -> np.ndarray:
    change: np.ndarray = right(rows[-1], place) - right(rows[place], place)
    return change


def _below_best(rows: Sequence[Row], place: int) -> np.ndarray:
    """Right answers at the step before the end at which the task was at its best, less those at the end."""
    if place == len(rows) - 1:
        return np.zeros_like(right(rows[-1], place))
    before = [right(row, place) for row in rows[place:-1]]
    below: np.ndarray = max(before, key=lambda answers: float(answers.mean())) - right(rows[-1], place)
    return below
