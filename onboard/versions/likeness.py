"""How much tasks are alike: by the words of their labels, and the weights of a readout that these go with.

Both are the task's lesson (`onboard.statistics.prior`): tasks are alike as far as what one teaches the prior is of use
to the other. Among the tasks that `mini` was trained on, the most similar one is of the same family in 59% of cases by
lessons, in 42% by the cosine of embeddings, and in 5% by chance. A task without a lesson, a regression for example, is
compared by its embedding; without that by the weights of its readout.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from onboard.statistics.prior import Lesson

NOTHING: Final = 1e-9  # lengths below are rounding
_DIRECTIONS: Final = 64  # of words and of weights that are compared; so many tell as much as all of them
_FEWER: Final = 24  # the same of more tasks than FEW
_FEW: Final = 1_500
_MOST_LABELS: Final = 1_000  # whose words and weights say which directions these are
_FEWEST_MEASURED: Final = 3  # of two tasks there is one cosine
_MOST_MEASURED: Final = 512  # tasks that say how likenesses of one kind compare with those of another


@dataclass(frozen=True, slots=True)
class Traits:
    """What tells which other tasks a task is like; None of what it lacks.

    Args:
        lesson: what it teaches the prior.
        z: (t,) its embedding.
        weights: (K, w) of its readout, where it has no lesson.
    """

    lesson: Lesson | None = None
    z: np.ndarray | None = None
    weights: np.ndarray | None = None

    @property
    def basis(self) -> str:
        """What the task is placed by: `lesson`, `embedding` or `readout`; empty where it has none of them."""
        if self.lesson is not None:
            return "lesson"
        if self.z is not None:
            return "embedding"
        return "" if self.weights is None else "readout"


class Likeness:
    """Similarities of tasks, from -1 to 1, a few rows of the matrix at a time.

    Args:
        traits: of every task, in their order.
    """

    def __init__(self, traits: Sequence[Traits]) -> None:
        self._tasks = len(traits)
        lessons = [one.lesson for one in traits]
        weights = [_weights(one) for one in traits]
        directions = _DIRECTIONS if len(traits) <= _FEW else _FEWER
        across = _directions([part for part in weights if part is not None], directions)
        taught = _directions([lesson.names.astype(np.float32) for lesson in lessons if lesson is not None], directions)
        kinds = (
            _vectors(lessons, lambda place: _lesson_vector(lessons[place], weights[place], taught, across)),
            _vectors([one.z for one in traits], lambda place: _unit(traits[place].z)),
            _vectors(weights, lambda place: _unit(_moment(weights[place], across))),
        )
        self._kinds = [kind for kind in kinds if kind is not None]
        spreads = [_spread(*kind) for kind in self._kinds]
        standard = next((spread for spread in spreads if spread is not None), (0.0, 1.0))
        self._scales = [_onto(spread, standard) for spread in spreads]

    def __len__(self) -> int:
        return self._tasks

    def rows(self, start: int, stop: int) -> np.ndarray:
        """(m, n) how much tasks from `start` to before `stop` are like each task; 0 where nothing can tell."""
        stop = min(stop, self._tasks)
        like = np.zeros((stop - start, self._tasks))
        known = np.zeros(like.shape, dtype=bool)
        for (present, vectors), (offset, factor) in zip(self._kinds, self._scales, strict=True):
            told = present[start:stop, None] & present[None] & ~known
            if told.any():
                cosines = vectors[start:stop] @ vectors.T
                like = np.where(told, np.clip(offset + factor * cosines, -1.0, 1.0), like)
                known |= told
        return like


def _weights(traits: Traits) -> np.ndarray | None:
    given = traits.weights if traits.lesson is None else traits.lesson.weights
    if given is None:
        return None
    unit = given.astype(np.float32)
    return np.asarray(unit / np.maximum(np.linalg.norm(unit, axis=1, keepdims=True), NOTHING))


def _directions(parts: Sequence[np.ndarray], most: int) -> np.ndarray:
    """(w, d) the directions in which rows of all parts (·, w) reach furthest; narrower parts lack the last columns."""
    if not parts:
        return np.zeros((0, 0), dtype=np.float32)
    rows = np.vstack([_wide(part, max(part.shape[1] for part in parts)) for part in parts])
    rows = rows[:: -(-len(rows) // _MOST_LABELS)].astype(np.float64)
    values, mixes = np.linalg.eigh(rows @ rows.T)
    kept = np.flatnonzero(values > NOTHING * max(float(values[-1]), NOTHING))[-most:]
    found: np.ndarray = ((rows.T @ mixes[:, kept]) / np.sqrt(values[kept])).astype(np.float32)
    return found


def _wide(part: np.ndarray, width: int) -> np.ndarray:
    return np.pad(part, ((0, 0), (0, width - part.shape[1])))


def _vectors(
    having: Sequence[object | None], vector: Callable[[int], np.ndarray]
) -> tuple[np.ndarray, np.ndarray] | None:
    """Which tasks have it (n,), and the unit vector of each that does (n, d); None where no task does."""
    present = np.array([one is not None for one in having], dtype=bool)
    if not present.any():
        return None
    rows = {int(place): vector(int(place)) for place in np.flatnonzero(present)}
    width = max(map(len, rows.values()))
    vectors = np.zeros((len(having), width), dtype=np.float32)
    for place, row in rows.items():
        vectors[place, : len(row)] = row
    return present, vectors


def _lesson_vector(
    lesson: Lesson | None, weights: np.ndarray | None, taught: np.ndarray, across: np.ndarray
) -> np.ndarray:
    """Of half the words, and half the words with the weights that they go with; whatever the order of labels."""
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
    """Of length one; zeros stay zeros, whose cosine with everything is 0."""
    assert numbers is not None
    flat = numbers.astype(np.float64)
    unit: np.ndarray = (flat / max(float(np.linalg.norm(flat)), NOTHING)).astype(np.float32)
    return unit


def _spread(present: np.ndarray, vectors: np.ndarray) -> tuple[float, float] | None:
    """Mean and deviation of the cosines of one kind; None of fewer than three tasks."""
    rows = np.flatnonzero(present)
    rows = rows[:: -(-len(rows) // _MOST_MEASURED)]
    if len(rows) < _FEWEST_MEASURED:
        return None
    cosines = (vectors[rows] @ vectors[rows].T)[np.triu_indices(len(rows), 1)]
    return float(cosines.mean()), float(cosines.std())


def _onto(spread: tuple[float, float] | None, standard: tuple[float, float]) -> tuple[float, float]:
    """Offset and factor that bring cosines of one kind onto the scale of the first kind."""
    if spread is None or spread == standard or spread[1] < NOTHING:
        return 0.0, 1.0
    factor = standard[1] / spread[1]
    return standard[0] - factor * spread[0], factor
