"""Rows of the transfer bench without a measurement."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np

from bench.harness.rows import Row, packed
from bench.transfer.cells import TrainingRun


def made(run: TrainingRun, right: np.ndarray, **more: Any) -> Row:
    accuracy = 100.0 * float(right.mean())
    return {**asdict(run), "accuracy": accuracy, "rows": len(right), "correct": packed(right), "seconds": 1.0,
            "row_passes": 10, "chosen": "sst2", **more}  # fmt: skip
