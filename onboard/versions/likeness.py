"""Similarity of tasks: by the words of their labels, and the readout weights of these labels.

Both are the task's lesson (`onboard.statistics.prior`): tasks are similar if the lesson of one helps the other. Among
the tasks that `mini` was trained on, the most similar one is of the same family in 59% of cases by lessons, in 42% by
the cosine of embeddings, and in 5% by chance. A task without a lesson, such as a regression, is compared by its
embedding, or else by its readout weights.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from onboard.statistics.prior import Lesson

NOTHING: Final = 1e-9  # lengths below are rounding errors
_DIRECTIONS: Final = 64  # number of compared directions of words and weights; as informative as all of them
_FEWER: Final = 24  # the same for more than FEW tasks
_FEW: Final = 1_500
_MOST_LABELS: Final = 1_000  # labels that determine the directions
_FEWEST_MEASURED: Final = 3  # two tasks have only one cosine
_MOST_MEASURED: Final = 512  # tasks that determine the scale between kinds of similarity


@dataclass(frozen=True, slots=True)
class Traits:
    """The properties that determine which tasks a task is similar to; None if missing.

    Args:
        z: (t,) its embedding.
        weights: (K, w) of its readout, if it has no lesson.
    """

    lesson: Lesson | None = None
    z: np.ndarray | None = None
    weights: np.ndarray | None = None

    @property
    def basis(self) -> str:
        """The property used: `lesson`, `embedding` or `readout`; empty if the task has none of them."""
        if self.lesson is not None:
            return "lesson"
        if self.z is not None:
            return "embedding"
        return "" if self.weights is None else "readout"


class Likeness:
    """Similarities of tasks, from -1 to 1, a few rows of the matrix at a time."""

    def __init__(self, traits: Sequence[Traits]) -> None:
        self._tasks = len(traits)
        lessons = [task_traits.lesson for task_traits in traits]
        weights = [_weights(task_traits) for task_traits in traits]
        directions = _DIRECTIONS if len(traits) <= _FEW else _FEWER
        across = _directions([part for part in weights if part is not None], directions)
        taught = _directions([lesson.names.astype(np.float32) for lesson in lessons if lesson is not None], directions)
        kinds = (
            _vectors(lessons, lambda place: _lesson_vector(lessons[place], weights[place], taught, across)),
            _vectors([task_traits.z for task_traits in traits], lambda place: _unit(traits[place].z)),
            _vectors(weights, lambda place: _unit(_moment(weights[place], across))),
        )
        self._kinds = [kind for kind in kinds if kind is not None]
        spreads = [_spread(*kind) for kind in self._kinds]
        standard = next((spread for spread in spreads if spread is not None), (0.0, 1.0))
        self._scales = [_onto(spread, standard) for spread in spreads]

    def __len__(self) -> int:
        return self._tasks

    def rows(self, start: int, stop: int) -> np.ndarray:
        """Return similarities (m, n) of tasks from `start` to before `stop` with all tasks; 0 if unknown."""
        stop = min(stop, self._tasks)
        like = np.zeros((stop - start, self._tasks))
        filled = np.zeros(like.shape, dtype=bool)
        for (has_kind, vectors), (offset, factor) in zip(self._kinds, self._scales, strict=True):
            comparable = has_kind[start:stop, None] & has_kind[None] & ~filled
            if comparable.any():
                cosines = vectors[start:stop] @ vectors.T
                like = np.where(comparable, np.clip(offset + factor * cosines, -1.0, 1.0), like)
                filled |= comparable
        return like


def _weights(traits: Traits) -> np.ndarray | None:
    label_weights = traits.weights if traits.lesson is None else traits.lesson.weights
    if label_weights is None:
        return None
    unit = label_weights.astype(np.float32)
    return np.asarray(unit / np.maximum(np.linalg.norm(unit, axis=1, keepdims=True), NOTHING))


def _directions(parts: Sequence[np.ndarray], most: int) -> np.ndarray:
    """Return the directions (w, d) of largest extent of all rows (·, w); narrower parts are padded."""
    if not parts:
        return np.zeros((0, 0), dtype=np.float32)
    rows = np.vstack([_wide(part, max(part.shape[1] for part in parts)) for part in parts])
    rows = rows[:: -(-len(rows) // _MOST_LABELS)].astype(np.float64)
    values, mixes = np.linalg.eigh(rows @ rows.T)
    largest = np.flatnonzero(values > NOTHING * max(float(values[-1]), NOTHING))[-most:]
    directions: np.ndarray = ((rows.T @ mixes[:, largest]) / np.sqrt(values[largest])).astype(np.float32)
    return directions


def _wide(part: np.ndarray, width: int) -> np.ndarray:
    return np.pad(part, ((0, 0), (0, width - part.shape[1])))


def _vectors(
    having: Sequence[object | None], vector: Callable[[int], np.ndarray]
) -> tuple[np.ndarray, np.ndarray] | None:
    """Return which tasks have the property (n,), and unit vectors of these (n, d); None if no task has it."""
    has_property = np.array([property_of_task is not None for property_of_task in having], dtype=bool)
    if not has_property.any():
        return None
    rows = {int(place): vector(int(place)) for place in np.flatnonzero(has_property)}
    width = max(map(len, rows.values()))
    vectors = np.zeros((len(having), width), dtype=np.float32)
    for place, row in rows.items():
        vectors[place, : len(row)] = row
    return has_property, vectors


def _lesson_vector(
    lesson: Lesson | None, weights: np.ndarray | None, taught: np.ndarray, across: np.ndarray
) -> np.ndarray:
    """Return a vector of the label words, and of the words with their weights, independent of the order of labels."""
    assert lesson is not None
    assert weights is not None
    words = lesson.names.astype(np.float32) @ taught
    with_weights = _unit((words.T @ (weights @ across[: weights.shape[1]])).ravel())
    return _unit(np.concatenate([with_weights, _unit((words.T @ words).ravel())]))


def _moment(weights: np.ndarray | None, across: np.ndarray) -> np.ndarray:
    assert weights is not None
    reach = weights @ across[: weights.shape[1]]
    return np.asarray((reach.T @ reach).ravel())


def _unit(numbers: np.ndarray | None) -> np.ndarray:
    """Normalize to length one; zeros stay zeros, with cosine 0 to everything."""
    assert numbers is not None
    flat = numbers.astype(np.float64)
    unit: np.ndarray = (flat / max(float(np.linalg.norm(flat)), NOTHING)).astype(np.float32)
    return unit


def _spread(present: np.ndarray, vectors: np.ndarray) -> tuple[float, float] | None:
    """Return mean and standard deviation of the cosines of one kind; None for fewer than three tasks."""
    rows = np.flatnonzero(present)
    rows = rows[:: -(-len(rows) // _MOST_MEASURED)]
    if len(rows) < _FEWEST_MEASURED:
        return None
    cosines = (vectors[rows] @ vectors[rows].T)[np.triu_indices(len(rows), 1)]
    return float(cosines.mean()), float(cosines.std())


def _onto(spread: tuple[float, float] | None, standard: tuple[float, float]) -> tuple[float, float]:
    """Return offset and factor that map cosines of one kind to the scale of the first kind."""
    if spread is None or spread == standard or spread[1] < NOTHING:
        return 0.0, 1.0
    factor = standard[1] / spread[1]
    return standard[0] - factor * spread[0], factor
