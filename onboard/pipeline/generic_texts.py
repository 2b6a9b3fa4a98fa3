"""Texts of all kinds as a base reads them: what a task is not about, and the middle of one that brings no texts.

They are the guard's canaries, which were written for this repository.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from onboard.data.splits import evenly_spaced
from onboard.domain.dataset import Example
from onboard.guard.canaries import canaries_of
from onboard.pipeline.material import Workbench
from onboard.storage.cache import Cache

MOST_TEXTS: Final = 64
# Features by the digest of the base, the device and whether the texts are pairs: always the same.
_read: Final = Cache[tuple[str, str, bool], np.ndarray](8)


def generic_features(bench: Workbench, checkpoint: Callable[[], None], *, pairs: bool) -> np.ndarray:
    """Features (m, 6h) of single texts, or of pairs, of every kind; they are read once in a process."""

    def read() -> np.ndarray:
        texts = canaries_of(pairs=pairs)
        drawn = [Example(*texts[place], label="") for place in evenly_spaced(len(texts), MOST_TEXTS)]
        return bench.features(drawn, checkpoint)

    return _read.get((bench.base.digest, str(bench.engine.device), pairs), read)
