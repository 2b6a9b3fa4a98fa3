"""Read and write lessons: the contribution of one task to the prior of its base, pinned to the backbone."""

from __future__ import annotations

from typing import Final

import numpy as np

from onboard.domain.safetensors_header import with_sorted_header
from onboard.errors import DamagedError, PinMismatchError
from onboard.statistics.prior import Lesson
from onboard.storage.embedding import read_metadata

LESSON: Final = "lesson"  # kind of the artifact


def pack_lesson(lesson: Lesson, base: str) -> bytes:
    """Return the file of a lesson, pinned to a base by its digest."""
    from safetensors.numpy import save

    tensors = {
        "names": np.ascontiguousarray(lesson.names, dtype=np.float16),
        "weights": np.ascontiguousarray(lesson.weights, dtype=np.float16),
    }
    return with_sorted_header(save(tensors, metadata={"base": base, "rows": str(lesson.rows)}))


def unpack_lesson(content: bytes, base: str) -> Lesson:
    """Return the lesson in a file. Its numbers may not be finite (`Lesson.is_finite`).

    Args:
        base: digest of the base that uses the lesson in its prior.

    Raises:
        DamagedError: the bytes contain no lesson.
        PinMismatchError: it belongs to another base.
    """
    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        tensors, facts = load(content), read_metadata(content)
        lesson, pinned = Lesson(tensors["names"], tensors["weights"], int(facts["rows"])), facts["base"]
    except (SafetensorError, KeyError, ValueError) as error:
        raise DamagedError("lesson-unreadable") from error
    if not lesson.names.ndim == lesson.weights.ndim == 2 or len(lesson.names) != len(lesson.weights):
        raise DamagedError("lesson-unreadable")
    if pinned != base:
        raise PinMismatchError("lesson-of-other-base", pinned=pinned, present=base)
    return lesson
