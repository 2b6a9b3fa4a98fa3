"""A prior for readouts, learned from tasks that are known: which weights the words of a label usually go with.

Every task with rows is a lesson: the features of its labels' words, and the readout that its rows alone make. One
linear map M, ridge regression in closed form, goes from words to weights (a hypernetwork without gradients). A new
task's readout is drawn towards M(words) instead of towards zero (biased ridge: Denevi et al. 2018, arXiv 1803.08089).
M is a function of the set of lessons alone, so it is refitted in seconds when a task is published, and exactly without
a task that is deleted.

Both sides are on the task's scale: signed roots of features, centred (words over the labels of their task, weights
too), every block as long as any other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from onboard.errors import InputError
from onboard.statistics.blocks import lengths_of_blocks

RIDGE: Final = 1.0  # of the map, of the mean squared length of the words
HALF_TAUGHT: Final = 64.0  # rows at which a lesson counts half as much as one of very many
NAME_BLOCKS: Final = 3  # of the words: those of a single text


@dataclass(frozen=True)
class Lesson:
    """What one task teaches the prior.

    Args:
        names: (K, 3h) float16, the words of its labels on the scale above (`names_on_scale`).
        weights: (K, b·h) float16, its readout's, of the rows alone, without prior and without words
            (`onboard.statistics.readout.lesson_of`); b = 3 blocks of single texts, 6 of pairs.
        rows: that made them.
    """

    names: np.ndarray
    weights: np.ndarray
    rows: int

    @property
    def is_finite(self) -> bool:
        """Whether every number of it is one."""
        return bool(np.isfinite(self.names).all() and np.isfinite(self.weights).all())


@dataclass(frozen=True)
class Prior:
    """The map of one form of task (single texts, or pairs), fitted to lessons.

    Args:
        matrix: M (b·h, 3h) float32.
        inner: (3h, 3h) float64, what the words of all lessons say together, with the ridge: whose part a lesson has.
        lessons: by task, those that it was fitted to, in the order of their names.
        left_out: tasks whose lesson has numbers that are not finite.
    """

    matrix: np.ndarray
    inner: np.ndarray
    lessons: Mapping[str, Lesson]
    left_out: tuple[str, ...] = ()

    def weights(self, names: np.ndarray) -> np.ndarray:
        """(K, b·h) float64 that a task's readout is drawn towards; `names` (K, 3h) as of a lesson."""
        drawn: np.ndarray = names.astype(np.float64) @ self.matrix.T.astype(np.float64)
        return drawn

    def contributions(self, names: np.ndarray) -> dict[str, float]:
        """Which share of `weights(names)` each task's lesson brought, largest first; they sum to one.

        The prior's weights are a sum over lessons; a task's share is how far its part points in their direction.
        """
        asked = np.linalg.solve(self.inner, names.astype(np.float64).T)  # (3h, K)
        whole = self.weights(names)
        length = float((whole**2).sum())
        if not length:
            return {}
        shares = {task: float((_part(lesson, asked) * whole).sum() / length) for task, lesson in self.lessons.items()}
        return dict(sorted(shares.items(), key=lambda item: -item[1]))


def fit_prior(lessons: Mapping[str, Lesson]) -> Prior | None:
    """The prior that these lessons make, the same to the last bit whatever their order.

    Args:
        lessons: of tasks of one form, by name.

    Returns:
        None where no lesson is left.

    Raises:
        InputError: lessons of several widths: they are of several bases.
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
    """Words as a lesson has them, (K, 3h) float16, of their features (K, 3h)."""
    roots = np.sign(names) * np.sqrt(np.abs(names, dtype=np.float64))
    centred = roots - roots.mean(0)
    scaled: np.ndarray = (centred / lengths_of_blocks(centred, NAME_BLOCKS)).astype(np.float16)
    return scaled


def _counted(lesson: Lesson) -> float:
    """The root of what every label of a lesson counts."""
    return float(np.sqrt(lesson.rows / (lesson.rows + HALF_TAUGHT)))


def _part(lesson: Lesson, asked: np.ndarray) -> np.ndarray:
    """(K, b·h) of the prior's weights that one lesson brings; `asked` (3h, K) are words behind the inverse."""
    counted = _counted(lesson) ** 2
    part: np.ndarray = counted * (asked.T @ lesson.names.T.astype(np.float64)) @ lesson.weights.astype(np.float64)
    return part
