"""How long a job will take, roughly: a straight line in rows and tokens, with constants measured on `mini`."""

from __future__ import annotations

from typing import Final

START_SECONDS: Final = 6.0  # starting a worker, importing torch, loading the base
PROBE_SECONDS_PER_TOKEN: Final = 1.5e-3  # all candidates of the probe together, per token of a training row
TRAIN_SECONDS_PER_TOKEN: Final = 1.5e-4  # one forward and backward pass, per token
EVALUATE_SECONDS_PER_TOKEN: Final = 4.0e-5  # one forward pass, per token
TRAIN_STEPS: Final = 40  # optimiser steps of a job, whatever the number of rows
BATCH_ROWS: Final = 16
PROBE_MOST_ROWS: Final = 256  # rows that the probe looks at
TOKENS_PER_CHARACTER: Final = 0.25  # where no tokenizer is at hand

_GPU_SPEEDUP: Final = 20.0


def estimate_seconds(
    rows: int, mean_tokens: float, evaluation_rows: int = 0, *, max_tokens: int = 128, gpu: bool = False
) -> float:
    """Seconds from claim to publication of one job.

    Args:
        rows: training rows.
        mean_tokens: tokens of a row on average, before cutting.
        evaluation_rows: rows of validation and test together.
        max_tokens: tokens after which a row is cut.
        gpu: whether the worker has one.
    """
    tokens = min(mean_tokens, max_tokens)
    work = (
        PROBE_SECONDS_PER_TOKEN * min(rows, PROBE_MOST_ROWS)
        + TRAIN_SECONDS_PER_TOKEN * TRAIN_STEPS * min(rows, BATCH_ROWS)
        + EVALUATE_SECONDS_PER_TOKEN * evaluation_rows
    )
    return START_SECONDS + tokens * work / (_GPU_SPEEDUP if gpu else 1.0)
