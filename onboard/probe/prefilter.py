"""Select candidates for measurement: those with datasets similar to the new one, and a few others.

Fingerprints are available without reading embeddings, so ten thousand versions cost one SELECT. They may mislead, so
some candidates are selected for being unlike those already selected. Candidates without a fingerprint (published before
fingerprints existed, or a source that was never fingerprinted) are all measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

NEAREST: Final = 32
SPREAD: Final = 8
ANCHORS: Final = 12  # of a base with fingerprints; otherwise all its anchors are measured
_TINY: Final = 1e-6


def prefilter(
    fingerprint: np.ndarray,
    fingerprints: Sequence[np.ndarray | None],
    nearest: int = NEAREST,
    spread: int = SPREAD,
    *,
    scaled: bool = True,
) -> list[int]:
    """Return the indices of candidates to measure, in order; all of them if there are few.

    Args:
        fingerprint: of the new task (t,).
        fingerprints: of each candidate (t,); those without one are always included.
        nearest: number of candidates with the largest cosine.
        spread: number of further candidates, each the farthest from all selected before.
        scaled: whether numbers have mean 0 and standard deviation 1; if not, the candidates give the scale.
    """
    with_fingerprint = [
        (index, fingerprint) for index, fingerprint in enumerate(fingerprints) if fingerprint is not None
    ]
    if len(with_fingerprint) <= nearest + spread:
        return list(range(len(fingerprints)))
    points = np.stack([point for _, point in with_fingerprint])  # (N, t)
    if not scaled:
        middle, deviation = points.mean(0), points.std(0) + _TINY
        points, fingerprint = (points - middle) / deviation, (fingerprint - middle) / deviation
    points /= np.maximum(np.linalg.norm(points, axis=1, keepdims=True), _TINY)
    selected = {with_fingerprint[place][0] for place in _taken(points, fingerprint, nearest, spread)}
    return [index for index, fingerprint in enumerate(fingerprints) if fingerprint is None or index in selected]


def _taken(points: np.ndarray, fingerprint: np.ndarray, nearest: int, spread: int) -> list[int]:
    likeness = points @ fingerprint  # (N,)
    selected: list[int] = np.argsort(-likeness, kind="stable")[:nearest].tolist()
    closest = (points @ points[selected].T).max(1)  # (N,), to any selected one
    for _ in range(spread):
        closest[selected] = np.inf
        selected.append(int(closest.argmin()))
        closest = np.maximum(closest, points @ points[selected[-1]])
    return selected
