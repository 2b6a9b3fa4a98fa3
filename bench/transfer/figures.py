"""What the runs say: means with intervals over draws and test rows, regret, Holm's correction.

Draws (seeds) and test rows of a task are crossed random effects: the variance of a mean is that of the draws over S
plus that of the rows over R, each estimated by the analysis of variance (Searle, Casella and McCulloch, Variance
Components, 1992, chapter 4). Three draws say little of their own variance, and a bootstrap over them is too narrow: it
is pooled, over the tasks of a mean, or for a single cell over the n of its task (tasks differ in it by far more) or,
where there is one n, over all, and Student's t has (S - 1) degrees of freedom for each of them. Simulated with 12 cells
of 3 draws and 500 rows whose draws deviate by 0 to 5 points, in some tasks four times as much as in others: 96 to 100%
of the cells' 95% intervals hold the truth, 94 to 98% of their means', and Holm calls one of 12 true nulls below in 1%
of the cases at most where cells of a task are pooled, in up to 5% where all are.

Regret has an oracle that is chosen on the other draws, so its draws are not independent: there only tasks count, each
with one mean.

A task's test rows, and maybe rows of its draws, are the same at every n: its cells are averaged before anything is
estimated, and only tasks count as independent. Two methods are compared on the same draws and rows, so what a hard row
costs both cancels out.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

import numpy as np

from bench.transfer.cells import AUTO, RANDOM, SOURCES, UNGATED, Run
from bench.transfer.recipes import CHOSEN_AT, CREDITED
from bench.transfer.runs import Row, unpacked
from onboard.statistics.holm import holm_adjusted
from onboard.statistics.student import below, quantile

LEVEL: Final = 0.05
RESAMPLES: Final = 10_000
BY_RULE: Final = "by rule"  # a method that is read off the tuned runs

Rows = Mapping[Run, Row]
Hands = Mapping[str, str]  # hand-picked source of each task
Matrix = np.ndarray  # (S, R): draws × test rows, 1 where the answer is right, or a difference of two such
Place = tuple[str, int]  # task and n
Cells = Mapping[Place, Matrix]


class Key(NamedTuple):
    """What runs are counted together.

    Args:
        method: one of OURS or BASELINES.
        start: of ours; `hand` is each task's hand-picked source.
        recipe: of a baseline that is trained; empty for the one that it is credited with.
    """

    method: str
    start: str = ""
    recipe: str = ""


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

    That of the draws is an estimate without bias, so it may be below zero; that of the rows holds what is left, too.
    """

    mean: float
    of_draws: float
    of_rows: float


def with_rule(rows: Rows) -> dict[Run, Row]:
    """The rows, and beside each tuned run what `--tune-hypernetwork auto` would have published, as a run of `BY_RULE`.

    Where the rule or the folds say no, those are the answers of the embedding alone.
    """
    by_rule = {
        replace(run, method=BY_RULE): {**row, "correct": row["auto"]} for run, row in rows.items() if "auto" in row
    }  # fmt: skip
    return {**rows, **by_rule}


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
    """What each task adds to the mean over cells (T)."""
    by_task: dict[str, float] = {}
    for (task, _), matrix in cells.items():
        by_task[task] = by_task.get(task, 0.0) + float(matrix.mean()) / len(cells)
    return np.array(list(by_task.values()))


def figures(cells: Cells, *, by_task: bool = False) -> dict[Place, Figure]:
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


@dataclass(frozen=True)
class Results:
    """The finished rows of a suite.

    Args:
        rows: by run.
        hands: hand-picked source of each task.
        seeds: the draws that a figure needs all of.
    """

    rows: Rows
    hands: Hands
    seeds: tuple[int, ...]

    def matrix(self, task: str, shots: int, key: Key) -> Matrix | None:
        """Right answers of one task (S, R); None where a draw is missing."""
        runs = self.runs(task, shots, key)
        if any(run not in self.rows for run in runs):
            return None
        return np.stack([unpacked(self.rows[run]) for run in runs]).astype(np.float64)

    def runs(self, task: str, shots: int, key: Key) -> list[Run]:
        """One for each draw."""
        start = self.hands[task] if key.start == "hand" else key.start
        recipe = key.recipe or CREDITED.get(key.method, "")
        return [Run(task, shots, seed, key.method, start, recipe) for seed in self.seeds]

    def chosen_by(self, method: str, recipe: str) -> Figure | None:
        """Accuracy of a baseline's recipe over the tasks where both run; None where one is missing."""
        shots, seed = CHOSEN_AT
        return replace(self, seeds=(seed,)).mean(self.hands, shots, Key(method, recipe=recipe))

    def mean(self, tasks: Iterable[str], shots: int, key: Key) -> Figure | None:
        """Accuracy over tasks; None where one is missing."""
        return _whole({(task, shots): self.matrix(task, shots, key) for task in tasks})

    def gain(self, tasks: Iterable[str], shots: int, key: Key, other: Key) -> Figure | None:
        """Accuracy of `key` less that of `other`; None where a task is missing for either."""
        return _whole({(task, shots): self._difference(task, shots, key, other) for task in tasks})

    def gains(self, places: Iterable[Place], key: Key, other: Key) -> dict[Place, Figure]:
        """The same of each place where both were measured, by itself."""
        differences = {(task, shots): self._difference(task, shots, key, other) for task, shots in places}
        return figures(_there(differences), by_task=True)

    def each(self, places: Iterable[Place], key: Key) -> dict[Place, Figure]:
        """Accuracy at each place where it was measured."""
        return figures(_there({(task, shots): self.matrix(task, shots, key) for task, shots in places}), by_task=True)

    def _difference(self, task: str, shots: int, key: Key, other: Key) -> Matrix | None:
        one, two = self.matrix(task, shots, key), self.matrix(task, shots, other)
        return None if one is None or two is None else one - two

    def measured(self, task: str, shots: int, key: Key) -> bool:
        """Whether every draw is there."""
        return all(run in self.rows for run in self.runs(task, shots, key))

    def regrets(self, method: str, shots: Sequence[int]) -> dict[Place, Matrix]:
        """What auto loses against the oracle, by task and n: the start (random or a source) that is best on the mean of
        the other draws, scored on this one (S, R). Only where every start was measured, and with two draws at least."""
        regrets = {}
        for task in self.hands:
            for count in shots:
                auto = self.matrix(task, count, Key(method, AUTO))
                names = (RANDOM, *(source for source in SOURCES if source != task))
                others = [self.matrix(task, count, Key(method, name)) for name in names]
                there = [answers for answers in others if answers is not None]
                if auto is None or len(there) < len(names) or len(self.seeds) < 2:
                    continue
                regrets[task, count] = oracle(np.stack(there)) - auto
        return regrets

    def core_seconds(self) -> tuple[float, int]:
        """Of all runs, each training counted once, and of how many runs none were kept."""
        taken = {run: row.get("seconds") for run, row in self.rows.items() if run.method != BY_RULE}
        known = {run: seconds for run, seconds in taken.items() if seconds is not None}
        again = (known.get(replace(run, method="embedding"), 0.0) for run in known if run.method == "hypernetwork")
        lost = sum(seconds is None and "trained_as" not in self.rows[run] for run, seconds in taken.items())
        return sum(known.values()) - sum(again), lost

    def beside_hand(self, method: str, shots: Sequence[int]) -> list[Beside]:
        """Auto less the hand-picked source in each (task, n), with Holm's correction over those that are gated."""
        places = [(task, count) for count in shots for task in self.hands]
        gains = self.gains(places, Key(method, AUTO), Key(method, "hand"))
        gated = [place for place in gains if place[0] not in UNGATED]
        adjusted = dict(zip(gated, holm_adjusted([gains[place].below for place in gated]), strict=True))
        return [Beside(*place, gain, adjusted.get(place)) for place, gain in gains.items()]


def _there(cells: Mapping[Place, Matrix | None]) -> dict[Place, Matrix]:
    return {place: matrix for place, matrix in cells.items() if matrix is not None}


def _whole(cells: Mapping[Place, Matrix | None]) -> Figure | None:
    """The mean, where every cell was measured."""
    there = _there(cells)
    return figure(there) if there and len(there) == len(cells) else None


@dataclass(frozen=True)
class Beside:
    """Auto beside the hand-picked source.

    Args:
        task, shots: where.
        gain: auto's accuracy less the other's.
        p_value: that auto is not below, one-sided, after Holm; None where it is not gated.
    """

    task: str
    shots: int
    gain: Figure
    p_value: float | None

    @property
    def below(self) -> bool:
        """Whether auto is significantly below."""
        return self.p_value is not None and self.p_value < LEVEL


def oracle(starts: np.ndarray) -> Matrix:
    """Right answers (S, R) of the start that is best on the mean of the other draws; the mean of those that tie.

    Args:
        starts: (C, S, R) right answers.
    """
    means = starts.mean(-1)  # (C, S)
    answers = np.empty(starts.shape[1:])
    for seed in range(starts.shape[1]):
        of_others = np.delete(means, seed, axis=1).mean(1)
        best = np.isclose(of_others, of_others.max(), rtol=0, atol=1e-12)
        answers[seed] = starts[best, seed].mean(0)
    return answers
