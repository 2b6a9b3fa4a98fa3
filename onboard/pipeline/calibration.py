"""How sure a job's answers are to sound: the temperature that rows want which trained nothing of what answers them."""

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
    """The temperature of a version, what chose it beside what is usual, and how many rows that were.

    1 of a regression, whose answer it would move, and of sets of labels, whose scores are calibrated already.

    Args:
        bench: the job's material.
        folds: what is published says of training rows without themselves; None without a cross-validation.
        held: probabilities (n, K) of the held-out rows at these places by what is published; asked only where there are
            no folds.
    """
    if bench.buckets is not None or bench.dataset.several_labels:
        return 1.0, HELD, 0
    if folds is not None:
        rows = rows_in_folds(bench.dataset, folds.fold)
        return fit_temperature(folds.probabilities, bench.targets(rows)), PREDICTED, len(rows)
    if not (chosen := choosing(len(bench.dataset.validation))):
        return 1.0, HELD, 0
    return fit_temperature(held(chosen), bench.targets(held_rows(bench))), HELD, len(chosen)
