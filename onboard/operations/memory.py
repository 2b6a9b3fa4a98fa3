"""Limit memory that C libraries retain, so that a process can run for months.

glibc gives each thread its own heap, as large as the thread's peak usage. oneDNN caches code for a thousand matrix
shapes, and texts of any length produce that many. Both grow for hours without making answers faster (`bench.load`).
"""

from __future__ import annotations

import ctypes
from typing import Final

_ARENA_MAX: Final = -8  # M_ARENA_MAX in glibc's malloc.h
_SHAPES: Final = (b"ONEDNN_PRIMITIVE_CACHE_CAPACITY", b"32")


def keep_memory_steady() -> None:
    """Use one heap for all new threads and cache few shapes, unless the environment sets other values.

    Call this before torch computes. C libraries other than glibc are not affected.
    """
    library = ctypes.CDLL(None)
    if hasattr(library, "mallopt"):
        library.mallopt(_ARENA_MAX, 1)
    library.setenv(*_SHAPES, 0)  # read by oneDNN; 0 keeps an existing value
