"""The lessons of a base: the contributions of its training tasks to its prior. One int8 file in its folder.

The file is not part of the base's digest, so that it can be added to an existing base. It is pinned by a digest in
`base.json` (if the base was made with it) and in every version of the prior.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import numpy as np

from onboard.domain.safetensors_header import with_sorted_header
from onboard.errors import DamagedError, PinMismatchError
from onboard.statistics.prior import Lesson

_PARTS: Final = ("names", "weights")


def pack_lessons(lessons: Mapping[str, Lesson], backbone: str) -> bytes:
    """Return the file: int8 with a scale per row, pinned to the backbone that encoded the texts."""
    from safetensors.numpy import save

    tensors = {}
    for task, lesson in sorted(lessons.items()):
        for part, numbers in zip(_PARTS, (lesson.names, lesson.weights), strict=True):
            tensors[f"{task}.{part}"], tensors[f"{task}.{part}.scale"] = _rounded(numbers)
    rows = {task: lesson.rows for task, lesson in sorted(lessons.items())}
    return with_sorted_header(save(tensors, metadata={"backbone": backbone, "rows": json.dumps(rows)}))


def read_lessons(path: Path, backbone: str) -> dict[str, Lesson]:
    """Return the lessons in a base's file, by task.

    Raises:
        DamagedError: it contains no lessons.
        PinMismatchError: they are of another backbone.
    """
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, "numpy") as file:
            facts = dict(file.metadata() or {})
            rows, pinned = dict(json.loads(facts["rows"])), str(facts["backbone"])
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - it is no mapping
        lessons = {task: _lesson(tensors, task, int(count)) for task, count in rows.items()}
    except (SafetensorError, OSError, KeyError, TypeError, ValueError) as error:
        raise DamagedError("lessons-unreadable", path=path, reason=error) from error
    if pinned != backbone:
        raise PinMismatchError("lessons-of-other-backbone", pinned=pinned, present=backbone, path=path)  # fmt: skip
    return lessons


def _lesson(tensors: Mapping[str, np.ndarray], task: str, rows: int) -> Lesson:
    names, weights = (_restored(tensors[f"{task}.{part}"], tensors[f"{task}.{part}.scale"]) for part in _PARTS)
    return Lesson(names, weights, rows)


def _rounded(numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return int8 (K, w) and the factor of each row (K,) float32."""
    longest = np.abs(numbers.astype(np.float32)).max(1)
    scale = np.where(longest > 0, longest / 127, 1.0).astype(np.float32)
    return np.rint(numbers.astype(np.float32) / scale[:, None]).astype(np.int8), scale


def _restored(rounded: np.ndarray, scale: np.ndarray) -> np.ndarray:
    numbers: np.ndarray = (rounded.astype(np.float32) * scale[:, None]).astype(np.float16)
    return numbers
