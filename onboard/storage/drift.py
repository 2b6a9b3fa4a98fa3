"""Statistics of a version's training rows in the metadata of its file, for drift detection. They contain no text."""

from __future__ import annotations

import base64
from typing import Any, Final

import numpy as np

from onboard.statistics.drift import DIRECTIONS, Sums, Training
from onboard.storage.embedding import read_facts

FACT: Final = "drift"


def training_facts(training: Training | None) -> dict[str, Any]:
    """Return the metadata for a version's file; empty if nothing is known."""
    if training is None:
        return {}
    stored, n = training.sums.to_json(), max(training.sums.read, 1)
    del stored["total"], stored["products"]
    mean = training.sums.total / n
    spread = training.sums.products / n - np.outer(mean, mean)
    moments = np.concatenate([mean, spread[np.triu_indices(DIRECTIONS)]]).astype("<f4")
    return {FACT: {**stored, "held_out": training.held_out, "moments": base64.b64encode(moments.tobytes()).decode()}}


def training_in(content: bytes) -> Training | None:
    """Return the statistics of training rows in a version's file; None if it has none or they cannot be read.

    Raises:
        DamagedError: the bytes are not the file of a version.
    """
    facts = read_facts(content).get(FACT)
    if facts is None:
        return None
    try:
        moments = np.frombuffer(base64.b64decode(facts["moments"], validate=True), dtype="<f4").astype(np.float64)
        mean, n = moments[:DIRECTIONS], int(facts["read"])
        above = np.triu_indices(DIRECTIONS)
        products = n * (moments[DIRECTIONS:] + np.outer(mean, mean)[above])
        sums = Sums.from_json({**facts, "total": n * mean, "products": products})
        return Training(sums, held_out=bool(facts["held_out"]))
    except (KeyError, TypeError, ValueError, AttributeError):
        return None  # drift detection then compares with the previous week only
