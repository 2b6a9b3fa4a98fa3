"""Which of many candidates are worth a measurement: those whose datasets look like the new one, and a few others.

A fingerprint is known before an embedding is read, so that ten thousand versions cost one SELECT. It may mislead; that
is why some of the candidates are chosen to be unlike those that were chosen already, whatever the new task looks like.
Candidates without one (published before there were fingerprints, or a source whose rows nobody has looked at) are all
measured: nothing says that they are not worth it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

NEAREST: Final = 32
SPREAD: Final = 8
ANCHORS: Final = 12  # of a base with fingerprints; without these all of its anchors are measured
_TINY: Final = 1e-6


def prefilter(
    fingerprint: np.ndarray,
    fingerprints: Sequence[np.ndarray | None],
    nearest: int = NEAREST,
    spread: int = SPREAD,
    *,
    scaled: bool = True,
) -> list[int]:
    """Indices of those to be measured, in their order; all of them where they are few.

    Args:
        fingerprint: of the new task (t,).
        fingerprints: of each candidate (t,); those without one are taken besides.
        nearest: how many of the largest cosine are taken.
        spread: how many more, each the one farthest from all that were taken before it.
        scaled: whether their numbers have mean 0 and deviation 1; else those of the candidates give the scale. There
            are enough of them wherever it matters.
    """
    known = [(index, fingerprint) for index, fingerprint in enumerate(fingerprints) if fingerprint is not None]
    if len(known) <= nearest + spread:
        return list(range(len(fingerprints)))
    points = np.stack([point for _, point in known])  # (N, t)
    if not scaled:
        middle, deviation = points.mean(0), points.std(0) + _TINY
        points, fingerprint = (points - middle) / deviation, (fingerprint - middle) / deviation
    points /= np.maximum(np.linalg.norm(points, axis=1, keepdims=True), _TINY)
    taken = {known[place][0] for place in _taken(points, fingerprint, nearest, spread)}
    return [index for index, fingerprint in enumerate(fingerprints) if fingerprint is None or index in taken]


def _taken(points: np.ndarray, fingerprint: np.ndarray, nearest: int, spread: int) -> list[int]:
    likeness = points @ fingerprint  # (N,)
    taken: list[int] = np.argsort(-likeness, kind="stable")[:nearest].tolist()
    closest = (points @ points[taken].T).max(1)  # (N,), to any that is taken
    for _ in range(spread):
        closest[taken] = np.inf
        taken.append(int(closest.argmin()))
        closest = np.maximum(closest, points @ points[taken[-1]])
    return taken
