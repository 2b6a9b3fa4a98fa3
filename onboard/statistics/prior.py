"""A prior for readouts, learned from earlier tasks: predicts weights from the words of a label.

Every task with rows is a lesson: the features of its labels' words, and a readout fitted on its rows alone. One linear
map M, ridge regression in closed form, maps words to weights (a hypernetwork without gradients). A new task's readout
is regularized towards M(words) instead of zero (biased ridge: Denevi et al. 2018, arXiv 1803.08089). M depends only on
the set of lessons. It is therefore refitted in seconds when a task is published, and exactly without a deleted task.

Words and weights are on the task's scale: signed roots of features, centered (words over the labels of their task,
weights too), with all blocks of equal length.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from onboard.errors import InputError
from onboard.statistics.blocks import lengths_of_blocks

RIDGE: Final = 1.0  # of the map, relative to the mean squared length of the words
HALF_TAUGHT: Final = 64.0  # rows at which a lesson has half the weight of one with very many
NAME_BLOCKS: Final = 3  # of the words: those of a single text


@dataclass(frozen=True)
class Lesson:
    """A task's contribution to the prior.

    Args:
        names: (K, 3h) float16, the words of its labels on the scale above (`names_on_scale`).
        weights: (K, b·h) float16 of a readout fitted on the rows alone, without prior and words
            (`onboard.statistics.readout.lesson_of`); b = 3 blocks for single texts, 6 for pairs.
        rows: number of rows.
    """

    names: np.ndarray
    weights: np.ndarray
    rows: int

    @property
    def is_finite(self) -> bool:
        """Whether all its numbers are finite."""
        return bool(np.isfinite(self.names).all() and np.isfinite(self.weights).all())


@dataclass(frozen=True)
class Prior:
    """The map for one form of task (single texts, or pairs), fitted to lessons.

    Args:
        matrix: M (b·h, 3h) float32.
        inner: (3h, 3h) float64, sum of the outer products of all lessons' words, plus the ridge.
        lessons: fitted lessons by task, in the order of their names.
        left_out: tasks with lessons that cannot be used.
    """

    matrix: np.ndarray
    inner: np.ndarray
    lessons: Mapping[str, Lesson]
    left_out: tuple[str, ...] = ()

    def weights(self, names: np.ndarray) -> np.ndarray:
        """Return the prior (K, b·h) float64 of a task's readout; `names` (K, 3h) as in a lesson."""
        drawn: np.ndarray = names.astype(np.float64) @ self.matrix.T.astype(np.float64)
        return drawn

    def contributions(self, names: np.ndarray) -> dict[str, float]:
        """Return each task's share of `weights(names)`, largest first; they sum to one.

        The prior's weights are a sum over lessons; a task's share is the projection of its part on them.
        """
        asked = np.linalg.solve(self.inner, names.astype(np.float64).T)  # (3h, K)
        whole = self.weights(names)
        length = float((whole**2).sum())
        if not length:
            return {}
        shares = {task: float((_part(lesson, asked) * whole).sum() / length) for task, lesson in self.lessons.items()}
        return dict(sorted(shares.items(), key=lambda item: -item[1]))


def fit_prior(lessons: Mapping[str, Lesson]) -> Prior | None:
    """Fit the prior to lessons; the result is bitwise independent of their order.

    Args:
        lessons: lessons of tasks of one form, by name.

    Returns:
        None if no lesson is left.

    Raises:
        InputError: the lessons have different widths, so they belong to different bases.
    """
    sound = {task: lessons[task] for task in sorted(lessons) if lessons[task].is_finite}
    left_out = tuple(sorted(set(lessons) - set(sound)))
    if not sound:
        return None
    widths = {(lesson.names.shape[1], lesson.weights.shape[1]) for lesson in sound.values()}
    if len(widths) > 1:
        raise InputError("lessons-of-several-bases")
    names = np.vstack([_counted(lesson) * lesson.names.astype(np.float64) for lesson in sound.values()])
    weights = np.vstack([_counted(lesson) * lesson.weights.astype(np.float64) for lesson in sound.values()])
    inner = names.T @ names + RIDGE * np.eye(names.shape[1])
    matrix = np.linalg.solve(inner, names.T @ weights).T
    return Prior(matrix.astype(np.float32), inner, sound, left_out)


def names_on_scale(names: np.ndarray) -> np.ndarray:
    """Convert features of words (K, 3h) to the scale of lessons, (K, 3h) float16."""
    roots = np.sign(names) * np.sqrt(np.abs(names, dtype=np.float64))
    centred = roots - roots.mean(0)
    scaled: np.ndarray = (centred / lengths_of_blocks(centred, NAME_BLOCKS)).astype(np.float16)
    return scaled


def _counted(lesson: Lesson) -> float:
    """Return the square root of the weight of a lesson's labels."""
    return float(np.sqrt(lesson.rows / (lesson.rows + HALF_TAUGHT)))


def _part(lesson: Lesson, asked: np.ndarray) -> np.ndarray:
    """Return a lesson's part (K, b·h) of the prior's weights; `asked` (3h, K) are words times the inverse
    of `inner`.
    """
    counted = _counted(lesson) ** 2
    part: np.ndarray = counted * (asked.T @ lesson.names.T.astype(np.float64)) @ lesson.weights.astype(np.float64)
    return part
