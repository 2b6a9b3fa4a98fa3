"""A process that answers for months keeps its size: what C libraries put by for later is bounded.

glibc gives threads heaps of their own, each as large as the most that its thread ever held; oneDNN keeps the code of a
thousand shapes of matrices, and texts of any length make that many. Both grow for hours, and no answer is quicker for
it (`bench.load`).
"""

from __future__ import annotations

import ctypes
from typing import Final

_ARENA_MAX: Final = -8  # M_ARENA_MAX of glibc's malloc.h
_SHAPES: Final = (b"ONEDNN_PRIMITIVE_CACHE_CAPACITY", b"32")


def keep_memory_steady() -> None:
    """One heap for all threads that start from now on, and the code of few shapes, unless the environment names more.

    Called before torch computes. A C library that is not glibc has its heap as ever.
    """
    library = ctypes.CDLL(None)
    if hasattr(library, "mallopt"):
        library.mallopt(_ARENA_MAX, 1)
    library.setenv(*_SHAPES, 0)  # oneDNN reads it by itself; 0: what is set stays
