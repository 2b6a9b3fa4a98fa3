"""An evaluator of labelled rows on a tiny engine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from onboard.data.hashes import row_hashes
from onboard.domain.dataset import Example
from onboard.model.engine import Engine
from onboard.probe.evaluator import Evaluator, ProbedTask


def evaluator_of(engine: Engine, rows: Sequence[Example], words: Sequence[str], **options: Any) -> Evaluator:
    """Of a classification whose labels are `words`; mapped unless the options say otherwise."""
    targets = np.eye(len(words), dtype=np.float32)[[list(words).index(str(row.label)) for row in rows]]
    hashes = np.array(row_hashes(rows), dtype=np.int64)
    ids = engine.encoder.encode([(row.text_a, row.text_b) for row in rows])
    of_task = {"mapped": True, **{name: options.pop(name) for name in ("mapped", "known_to_all") if name in options}}
    return Evaluator(engine, ProbedTask(ids, targets, words, hashes, **of_task), **options)
