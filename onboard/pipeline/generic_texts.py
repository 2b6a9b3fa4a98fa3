"""Features of generic texts: the contrast for novelty, and the center for a task that brings no texts.

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
# Features by digest of the base, device, and whether the texts are pairs; they never change.
_read: Final = Cache[tuple[str, str, bool], np.ndarray](8)


def generic_features(bench: Workbench, checkpoint: Callable[[], None], *, pairs: bool) -> np.ndarray:
    """Return features (m, 6h) of all generic texts, single or in pairs; computed once per process."""

    def read() -> np.ndarray:
        texts = canaries_of(pairs=pairs)
        drawn = [Example(*texts[place], label="") for place in evenly_spaced(len(texts), MOST_TEXTS)]
        return bench.features(drawn, checkpoint)

    return _read.get((bench.base.digest, str(bench.engine.device), pairs), read)
