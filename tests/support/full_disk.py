"""A disk that is full."""

from __future__ import annotations

import errno
from typing import Never


def full(*_: object, **__: object) -> Never:
    """What writes, on such a disk."""
    raise OSError(errno.ENOSPC, "No space left on device")
