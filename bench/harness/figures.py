"""Means of right answers with intervals over draws and test rows, and paired differences of them.

Draws (seeds) and test rows of a task are crossed random effects: the variance of a mean is that of the draws over S
plus that of the rows over R, each estimated by the analysis of variance (Searle, Casella and McCulloch, Variance
Components, 1992, chapter 4). Three draws say little of their own variance, and a bootstrap over them is too narrow: it
is pooled, over the tasks of a mean, or for a single cell over the n of its task (tasks differ in it by far more) or,
where there is one n, over all, and Student's t has (S - 1) degrees of freedom for each of them. Simulated with 12 cells
of 3 draws and 500 rows whose draws deviate by 0 to 5 points, in some tasks four times as much as in others: 96 to 100%
of the cells' 95% intervals hold the truth, 94 to 98% of their means', and Holm calls one of 12 true nulls below in 1%
of the cases at most where cells of a task are pooled, in up to 5% where all are.

A task's test rows, and maybe rows of its draws, are the same at every n: its cells are averaged before anything is
estimated, and only tasks count as independent. Two methods are compared on the same draws and rows, so what a hard row
costs both cancels out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from bench.harness.page import NONE
from onboard.statistics.student import below, quantile

LEVEL: Final = 0.05
RESAMPLES: Final = 10_000

Matrix = np.ndarray  # (S, R): draws × test rows, 1 where the answer is right, or a difference of two such
CellKey = tuple[str, int]  # task and n
Cells = Mapping[CellKey, Matrix]


@dataclass(frozen=True)
class Figure:
    """A mean in points (per cent of rows), with its 95% interval.

    Args:
        value, low, high: points.
        below: one-sided p-value of the mean being zero or more: small where a difference is surely negative.
        cells: how many (task, n) it is a mean of.
    """

    value: float
    low: float
    high: float
    below: float
    cells: int = 1

    @property
    def shown(self) -> str:
        """`71.3 (70.1 to 72.5)`."""
        return self.told()

    def told(self, decimals: int = 1) -> str:
        """The same, the value with so many decimals."""
        return f"{self.value:.{decimals}f} ({self.low:.1f} to {self.high:.1f})"


class Parts(NamedTuple):
    """A mean of draws × rows, and the variance that it has of the draws and of the rows (shares, shares squared).

    That of the draws is an estimate without bias, so it may be below zero; that of the rows holds the rest, too.
    """

    mean: float
    of_draws: float
    of_rows: float


def accuracy(scores: np.ndarray, targets: np.ndarray) -> float:
    """Share of rows whose likeliest label is the target's, of scores and targets (n, K)."""
    return float((scores.argmax(1) == targets.argmax(1)).mean())


def figure(cells: Cells) -> Figure:
    """Mean over cells, in points, with its interval; at least one cell. The draws' variance is pooled over tasks."""
    by_task: dict[str, list[Matrix]] = {}
    for (task, _), matrix in cells.items():
        by_task.setdefault(task, []).append(matrix / len(cells))
    components = [parts(np.sum(matrices, axis=0)) for matrices in by_task.values()]
    total = Parts(*(sum(summands) for summands in zip(*components, strict=True)))
    return _figure(total, len(components) * (_draws(cells) - 1), len(cells))


def figure_of_tasks(cells: Cells) -> Figure:
    """Mean over cells, in points; its interval is Student's t over the tasks' means, whatever their draws share.

    At least one cell; of one task the interval is that of `figure`.
    """
    sums = _by_task(cells)
    if len(sums) == 1:
        return figure(cells)
    return _figure(Parts(float(sums.sum()), len(sums) * float(np.var(sums, ddof=1)), 0.0), len(sums) - 1, len(cells))


def bootstrap_of_tasks(cells: Cells) -> tuple[float, float]:
    """95% interval of the same mean, in points: percentiles of the means of tasks drawn with replacement."""
    sums = _by_task(cells)
    drawn = np.random.default_rng(0).choice(sums, (RESAMPLES, len(sums))).sum(1)
    low, high = np.quantile(drawn, (LEVEL / 2, 1 - LEVEL / 2))
    return 100 * float(low), 100 * float(high)


def _by_task(cells: Cells) -> np.ndarray:
    """The contribution of each task to the mean over cells (T)."""
    by_task: dict[str, float] = {}
    for (task, _), matrix in cells.items():
        by_task[task] = by_task.get(task, 0.0) + float(matrix.mean()) / len(cells)
    return np.array(list(by_task.values()))


def figures(cells: Cells, *, by_task: bool = False) -> dict[CellKey, Figure]:
    """Each cell's mean with its interval; the draws' variance is that pooled over the cells, or its own if larger.

    Cells that are zero throughout, as where auto took the start that it is compared with, are not pooled.

    Args:
        cells: draws × rows of each.
        by_task: whether only cells of one task are pooled, where tasks have several and differ in what draws do.
    """
    components = {place: parts(matrix) for place, matrix in cells.items()}

    def shown(task: str, own: Parts) -> Figure:
        of_draws = [
            other.of_draws for place, other in components.items()
            if cells[place].any() and (not by_task or place[0] == task)  # equal trainings tell nothing
        ]  # fmt: skip
        pooled = float(np.mean(of_draws)) if of_draws else 0.0
        return _figure(own._replace(of_draws=max(pooled, own.of_draws)), len(of_draws) * (_draws(cells) - 1))

    return {place: shown(place[0], own) for place, own in components.items()}


def parts(matrix: Matrix) -> Parts:
    """Variance components of two crossed effects without repetition; of one draw all variance is the rows'."""
    draws, rows = matrix.shape
    of_draws, of_rows = matrix.mean(1), matrix.mean(0)
    of_rows_and_rest = float(of_rows.var(ddof=1) / rows) if rows > 1 else 0.0
    if draws == 1 or rows == 1:
        return Parts(float(matrix.mean()), 0.0, of_rows_and_rest)
    rest = matrix - of_draws[:, None] - of_rows + matrix.mean()
    of_rest = (rest**2).sum() / ((draws - 1) * (rows - 1) * draws * rows)
    return Parts(float(matrix.mean()), float(of_draws.var(ddof=1) / draws - of_rest), of_rows_and_rest)


def _draws(cells: Cells) -> int:
    return max((len(matrix) for matrix in cells.values()), default=0)


def _figure(components: Parts, freedom: int, cells: int = 1) -> Figure:
    deviation = float(np.sqrt(max(0.0, components.of_draws) + components.of_rows))
    if deviation == 0:
        p_value, far = float(components.mean >= 0), 0.0
    else:
        known = freedom or math.inf  # one draw says nothing of draws
        p_value, far = below(components.mean / deviation, known), quantile(1 - LEVEL / 2, known) * deviation
    return Figure(100 * components.mean, 100 * (components.mean - far), 100 * (components.mean + far), p_value, cells)


def plain(figure: Figure | None) -> str:
    """The value alone."""
    return f"{figure.value:.1f}" if figure else NONE


def with_interval(figure: Figure | None) -> str:
    """The value with its interval."""
    return figure.shown if figure else NONE


def signed(figure: Figure | None, decimals: int = 1) -> str:
    """A difference with its sign and interval."""
    return f"{figure.value:+.{decimals}f} ({figure.low:+.1f} to {figure.high:+.1f})" if figure else NONE
