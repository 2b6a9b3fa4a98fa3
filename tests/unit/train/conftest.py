"""Eight rows of a new task, on the tiny base."""

from __future__ import annotations

import numpy as np
import pytest

from onboard.model.batch import LabelledRows
from onboard.model.engine import Engine
from onboard.model.scoring import LabelTrie

TEXTS = ["good film", "bad plot", "a fine and great film", "awful plot", "happy film", "sad", "great plot", "poor"]


@pytest.fixture
def rows(tiny_engine: Engine) -> LabelledRows:
    """Of two labels in turn."""
    ids = tiny_engine.encoder.encode([(text, None) for text in TEXTS])
    return LabelledRows(ids, np.eye(2, dtype=np.float32)[[0, 1] * 4])


@pytest.fixture
def trie(tiny_engine: Engine) -> LabelTrie:
    """Of the words of these labels."""
    return tiny_engine.trie(["yes", "no"])
