"""What the runs say: means with paired bootstrap intervals over draws and test rows, regret, Holm's correction.

Of one task the draws (seeds) and the test rows are resampled, each by itself; of a mean over tasks every task's so. Two
methods are compared on the same draws and rows, so what a hard row costs both cancels out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np

from bench.transfer.cells import AUTO, RANDOM, SOURCES, UNGATED, Run
from bench.transfer.runs import Row, unpacked

DRAWS: Final = 4000
LEVEL: Final = 0.05

Rows = Mapping[Run, Row]
Key = tuple[str, str]  # method and start; of the start `hand` each task's hand-picked source
Hands = Mapping[str, str]  # hand-picked source of each task
Matrix = np.ndarray  # (S, R): draws × test rows, 1 where the answer is right, or a difference of two such


@dataclass(frozen=True)
class Figure:
    """A mean in points (per cent of rows), with its 95% interval.

    Args:
        value, low, high: points.
        below: share of the bootstrap's draws that are not below zero: small where a difference is surely negative.
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
        return f"{self.value:.1f} ({self.low:.1f} to {self.high:.1f})"


def right(rows: Rows, task: str, shots: int, key: Key, hands: Hands, seeds: Sequence[int]) -> Matrix | None:
    """Which answers are right (S, R); None where a draw is missing."""
    start = hands[task] if key[1] == "hand" else key[1]
    runs = [Run(task, shots, seed, key[0], start) for seed in seeds]
    if not runs or any(run not in rows for run in runs):
        return None
    return np.stack([unpacked(rows[run]) for run in runs]).astype(np.float64)


def figure(matrices: Sequence[Matrix]) -> Figure:
    """Mean over the matrices' means, in points, with its interval; at least one matrix."""
    drawn = np.mean([_resampled(matrix, place) for place, matrix in enumerate(matrices)], axis=0)
    low, high = np.quantile(drawn, (0.025, 0.975))
    value = float(np.mean([matrix.mean() for matrix in matrices]))
    below = (1.0 + float((drawn >= 0).sum())) / (1.0 + DRAWS)
    return Figure(100 * value, 100 * float(low), 100 * float(high), below, len(matrices))


def _resampled(matrix: Matrix, place: int) -> np.ndarray:
    """Means (DRAWS,) of draws × rows, each taken again with replacement."""
    of_seeds, of_rows = (_taken_again(count, 2 * place + axis) for axis, count in enumerate(matrix.shape))
    found: np.ndarray = ((of_rows @ matrix.T) * of_seeds).sum(1)
    return found


@lru_cache(64)
def _taken_again(count: int, seed: int) -> np.ndarray:
    """Shares (DRAWS, count) of what is drawn with replacement; the same for all figures."""
    return np.random.default_rng(seed).multinomial(count, np.full(count, 1 / count), DRAWS) / count


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
        """Right answers of one task; None where a draw is missing."""
        return right(self.rows, task, shots, key, self.hands, self.seeds)

    def mean(self, tasks: Iterable[str], shots: int, key: Key) -> Figure | None:
        """Accuracy over tasks; None where one is missing."""
        return self._over(self.matrix(task, shots, key) for task in tasks)

    def gain(self, tasks: Iterable[str], shots: int, key: Key, other: Key) -> Figure | None:
        """Accuracy of `key` less that of `other`; None where a task is missing for either."""
        return self._over(self._difference(task, shots, key, other) for task in tasks)

    def _difference(self, task: str, shots: int, key: Key, other: Key) -> Matrix | None:
        one, two = self.matrix(task, shots, key), self.matrix(task, shots, other)
        return None if one is None or two is None else one - two

    def _over(self, matrices: Iterable[Matrix | None]) -> Figure | None:
        found = list(matrices)
        there = [matrix for matrix in found if matrix is not None]
        return figure(there) if there and len(there) == len(found) else None

    def regrets(self, method: str, shots: Sequence[int]) -> dict[tuple[str, int], Matrix]:
        """What auto loses against the oracle, by task and n: the start (random or a source) that is best on the mean of
        the other draws, scored on this one (S, R). Only where every start was measured, and with two draws at least."""
        found = {}
        for task in self.hands:
            for count in shots:
                auto = self.matrix(task, count, (method, AUTO))
                names = (RANDOM, *(source for source in SOURCES if source != task))
                others = [self.matrix(task, count, (method, name)) for name in names]
                there = [each for each in others if each is not None]
                if auto is None or len(there) < len(names) or len(self.seeds) < 2:
                    continue
                found[task, count] = oracle(np.stack(there)) - auto
        return found

    def beside_hand(self, method: str, shots: Sequence[int]) -> list[Beside]:
        """Auto less the hand-picked source in each (task, n), with Holm's correction over those that are gated."""
        found = [
            (task, count, gain)
            for count in shots
            for task in self.hands
            if (gain := self.gain([task], count, (method, AUTO), (method, "hand")))
        ]
        gated = [index for index, (task, _, _) in enumerate(found) if task not in UNGATED]
        adjusted = dict(zip(gated, holm([found[index][2].below for index in gated]), strict=True))
        return [Beside(*each, adjusted.get(index)) for index, each in enumerate(found)]


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
    found = np.empty(starts.shape[1:])
    for seed in range(starts.shape[1]):
        of_others = np.delete(means, seed, axis=1).mean(1)
        best = np.isclose(of_others, of_others.max(), rtol=0, atol=1e-12)
        found[seed] = starts[best, seed].mean(0)
    return found


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjusted p-values, in their order: the error of calling any of them wrongly stays below the level."""
    count, running = len(p_values), 0.0
    adjusted = [0.0] * count
    for rank, index in enumerate(sorted(range(count), key=lambda each: p_values[each])):
        running = max(running, min(1.0, (count - rank) * p_values[index]))
        adjusted[index] = running
    return adjusted
