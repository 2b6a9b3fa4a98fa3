"""Calibrate a version: fit the temperature on rows that did not train the model that predicts them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from onboard.pipeline.evidence import HELD, PREDICTED, held_rows
from onboard.pipeline.material import Workbench
from onboard.pipeline.outputs import Folds
from onboard.statistics.temperature import fit_temperature
from onboard.train.crossvalidation import rows_in_folds
from onboard.train.learning import choosing


def temperature_of(
    bench: Workbench, folds: Folds | None, held: Callable[[Sequence[int]], np.ndarray]
) -> tuple[float, str, int]:
    """Fit the temperature of a version; return it, the kind of rows that it was fitted on, and their number.

    It is 1 for regressions, where it would move the answer, and for sets of labels, which are calibrated already.

    Args:
        bench: the job's material.
        folds: out-of-fold predictions of the version; None without a cross-validation.
        held: returns probabilities (n, K) of the held-out rows at these indices; called only without folds.
    """
    if bench.buckets is not None or bench.dataset.several_labels:
        return 1.0, HELD, 0
    if folds is not None:
        rows = rows_in_folds(bench.dataset, folds.fold)
        return fit_temperature(folds.probabilities, bench.targets(rows)), PREDICTED, len(rows)
    if not (chosen := choosing(len(bench.dataset.validation))):
        return 1.0, HELD, 0
    return fit_temperature(held(chosen), bench.targets(held_rows(bench))), HELD, len(chosen)
