"""How sure a job's answers are to sound: the temperature that rows want which trained nothing of what answers them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from onboard.domain.dataset import Example
from onboard.pipeline.evidence import HELD, PREDICTED, held_rows
from onboard.pipeline.material import Workbench
from onboard.pipeline.outputs import Folds
from onboard.statistics.temperature import fit_temperature
from onboard.train.crossvalidation import rows_in_folds


def temperature_of(
    bench: Workbench, folds: Folds | None, predict: Callable[[Sequence[Example]], np.ndarray]
) -> tuple[float, str, int]:
    """The temperature of a version, what chose it beside what is usual, and how many rows that were.

    1 of a regression, whose answer it would move.

    Args:
        bench: the job's material.
        folds: what is published says of training rows without themselves; None without a cross-validation.
        predict: probabilities (n, K) of held-out rows by what is published; asked only where there are no folds.
    """
    if bench.buckets is not None:
        return 1.0, HELD, 0
    if folds is not None:
        rows = rows_in_folds(bench.dataset, folds.fold)
        return fit_temperature(folds.probabilities, bench.targets(rows)), PREDICTED, len(rows)
    rows = held_rows(bench)
    probabilities = predict(rows) if rows else np.zeros((0, len(bench.words)))
    return fit_temperature(probabilities, bench.targets(rows)), HELD, len(rows)
