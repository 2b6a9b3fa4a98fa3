"""Estimate the duration of a job: the number of rows that pass the model, times the cost per row.

Rows are counted like in the stages, from their settings. This module does not import torch, which would be too slow for
`onboard check`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from onboard.data.limits import FEWEST_FOLDED_ROWS, HOLDOUT_FREE_ROWS, MAX_TOKENS, PROBE_ROWS, PROBE_TOKENS
from onboard.domain.methods import AUTO, LINEAR, SMALL, WITHOUT_EMBEDDING
from onboard.model.cost import Passes
from onboard.probe.passes import probe_passes
from onboard.train.learning_curve import affordable_curve
from onboard.train.settings import (
    FEWEST_CHOOSING,
    FEWEST_CURVE_ROWS,
    FOLDS,
    MOST_CHOOSING,
    SHARES,
    FewShotSettings,
    OwnWeightsSettings,
    TuningSettings,
    batches_an_epoch,
)

START_SECONDS: Final = 8.0  # start a worker, import torch, load the base, publish
TOKENS_PER_CHARACTER: Final = 0.25  # without a tokenizer
GPU_SPEEDUP: Final = 20.0
TRIED: Final = 1 + len(SHARES)  # the start, and shares of the way of the training
# In addition to its rows, a tuning step with `mini` generates and differentiates the weights of 16 earlier tasks: 31
# core seconds for 80 steps, 17 without. The guard takes 21 for the source tasks and up to 15 more (bench/results).
HELD_SECONDS: Final = 0.1
GUARD_SECONDS: Final = 10.0


@dataclass(frozen=True, slots=True)
class DatasetSize:
    """The properties of a dataset that determine the duration of its job.

    Args:
        rows: training rows, without held-out ones.
        mean_tokens: mean tokens per row, before truncation.
        validation: validation rows, submitted or held out.
        test: rows of the test split.
        regression: whether the labels are numbers.
    """

    rows: int
    mean_tokens: float
    validation: int = 0
    test: int = 0
    regression: bool = False

    @classmethod
    def of_report(cls, report: Mapping[str, Any]) -> DatasetSize | None:
        """Read the size from the report of a dataset's checks; None if it is incomplete.

        Args:
            report: a stored `onboard.contract.checks.DatasetReport`, of this or an earlier release.
        """
        rows, characters, validation = (report.get(part) for part in ("rows", "characters", "validation"))
        if not (rows and characters and validation):
            return None
        held_out = validation["held_out"]
        return cls(
            rows["train"] - held_out, characters["mean"] * TOKENS_PER_CHARACTER, held_out + rows["validation"],
            rows["test"], report.get("kind") == "regression",
        )  # fmt: skip


def train_passes(rows: int, validation: int, tokens: float, *, regression: bool = False, gpu: bool = False) -> Passes:
    """Count the rows of the training, its folds and its learning curve.

    Args:
        rows: training rows, without held-out ones.
        validation: held-out rows.
        tokens: mean tokens per row.
        regression, gpu: decide whether there is a learning curve.
    """
    settings = FewShotSettings().for_rows(rows)
    batch, steps, (curve_share,) = settings.batch, settings.steps, settings.curve
    trained = settings.seeds * _part(rows, batch, steps)
    rest = _rests(rows, validation)
    if not rest:
        if validation < FEWEST_CHOOSING:
            return Passes(trained=trained)
        choosing = min(validation, MOST_CHOOSING)
        halves = [rows - rows // 2, rows // 2]
        with_curve = trained + sum(_part(count, batch * count / rows, steps) for count in halves)
        if not regression and (gpu or affordable_curve(with_curve, tokens)):
            return Passes((TRIED + 2) * choosing, with_curve)
        return Passes(TRIED * choosing, trained)
    folded = trained + sum(_part(count, batch * count / rows, steps) for count in rest)
    halves = [round(curve_share * count) for count in rest]
    with_curve = folded + sum(_part(count, batch * count / rows, steps) for count in halves)
    if rows >= FEWEST_CURVE_ROWS and not regression and (gpu or affordable_curve(with_curve, tokens)):
        return Passes((TRIED + 1) * rows, with_curve)
    return Passes(TRIED * rows, folded)


def _rests(rows: int, validation: int) -> list[int]:
    """Return the number of training rows for each fold; empty without folds."""
    folded = not validation and FEWEST_FOLDED_ROWS <= rows <= HOLDOUT_FREE_ROWS
    return [rows - len(range(fold, rows, FOLDS)) for fold in range(FOLDS)] if folded else []


def _part(count: int, size: float, steps: int) -> float:
    """Return the number of rows in `steps` batches of about this size, for one order of the batches."""
    return steps * count / batches_an_epoch(count, size) if count else 0.0  # tasks without rows train on nothing


def own_passes(rows: int, validation: int) -> Passes:
    """Count the rows of the training of task-specific weights and of its folds; arguments as for `train_passes`."""
    settings = OwnWeightsSettings().for_rows(rows)
    rest = _rests(rows, validation)
    steps = settings.steps + sum(settings.for_part(count, of=rows).steps for count in rest)
    return Passes(rows if rest else 0, steps * min(settings.batch, rows))


def tuning_seconds(rows: int, validation: int, tokens: float) -> float:
    """Return the seconds of a tuning by `auto` that is worthwhile: its trial, itself, its folds, and the guard.

    Args:
        rows: training rows, without held-out ones.
        validation: held-out rows.
        tokens: mean tokens per row.
    """
    settings = TuningSettings().for_rows(rows)
    parts = [settings.for_part(count, of=rows) for count in _rests(rows, validation)]
    looks = parts if parts else [settings] if validation >= FEWEST_CHOOSING else []
    steps = settings.steps + sum(part.steps for part in parts) + sum(part.for_look().steps for part in looks)
    return GUARD_SECONDS + steps * HELD_SECONDS + Passes(trained=steps * settings.batch).seconds(tokens)


def first_seconds(size: DatasetSize, *, gpu: bool = False) -> float:
    """Return the seconds from claim to the provisional version, a readout; arguments as below."""
    return estimate_seconds(size, method=LINEAR, gpu=gpu)


def estimate_seconds(
    size: DatasetSize,
    *,
    unlabelled: int = 0,
    probed: bool = True,
    tuned: bool = False,
    gpu: bool = False,
    method: str = "",
    readout: bool = True,
) -> float:
    """Return the seconds from claim to publication of one job.

    Args:
        unlabelled: number of unlabeled texts.
        probed: whether the initialization is chosen; a named one is only measured.
        tuned: whether the hypernetwork is tuned.
        gpu: whether the worker has a GPU.
        method: the requested method; empty or the base's own method learns an embedding.
        readout: whether a readout is allowed; the learning curve is then that of readouts.
    """
    tokens = min(size.mean_tokens, MAX_TOKENS)
    if method in WITHOUT_EMBEDDING:  # a readout alone reads every row once
        probe, train = Passes(), Passes(size.rows) if method == LINEAR else own_passes(size.rows, size.validation)
    else:
        probe = probe_passes(size.rows) if probed else Passes(min(size.rows, PROBE_ROWS))
        without_curve = size.regression or readout
        train = train_passes(size.rows, size.validation, tokens, regression=without_curve, gpu=gpu)
    if method == AUTO:  # all methods that it may try
        own = own_passes(size.rows, size.validation)
        train = Passes(train.scored + len(SMALL) * own.scored, train.trained + len(SMALL) * own.trained)
    evaluated = Passes(size.validation + size.test + unlabelled)
    work = probe.seconds(min(tokens, PROBE_TOKENS)) + train.seconds(tokens) + evaluated.seconds(tokens)
    work += tuning_seconds(size.rows, size.validation, tokens) if tuned else 0.0
    return START_SECONDS + work / (GPU_SPEEDUP if gpu else 1.0)
