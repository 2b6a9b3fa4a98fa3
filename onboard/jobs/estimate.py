"""How long a job will take, roughly: the rows that go through the model, times what a row costs.

Rows are counted as the stages count them, by the stages' own settings; those come without torch, for which
`onboard check` has no time.
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

START_SECONDS: Final = 8.0  # starting a worker, importing torch, loading the base, publishing
TOKENS_PER_CHARACTER: Final = 0.25  # where no tokenizer is at hand
GPU_SPEEDUP: Final = 20.0
TRIED: Final = 1 + len(SHARES)  # the start, and shares of the way that training went
# Beside its rows, a step of a tuning with `mini` generates the weights of 16 earlier tasks, and goes back through them:
# 31 core seconds for 80 steps, 17 without. The guard takes 21 for the source tasks and up to 15 more (bench/results).
HELD_SECONDS: Final = 0.1
GUARD_SECONDS: Final = 10.0


@dataclass(frozen=True, slots=True)
class DatasetSize:
    """What of a dataset decides how long its job takes.

    Args:
        rows: training rows, without those that are held out.
        mean_tokens: tokens of a row on average, before cutting.
        validation: rows of validation, submitted or held out.
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
        """By what the check of a dataset said of it; None where it says too little.

        Args:
            report: what `onboard.data.report.CheckReport.to_json` gives, here or in an earlier version.
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
    """Rows of the training, its folds and its learning curve.

    Args:
        rows: training rows, without those that are held out.
        validation: held-out rows.
        tokens: of a row on average.
        regression, gpu: what decides about the learning curve.
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
    """Rows that are trained on beside each fold; none where nothing is folded."""
    folded = not validation and FEWEST_FOLDED_ROWS <= rows <= HOLDOUT_FREE_ROWS
    return [rows - len(range(fold, rows, FOLDS)) for fold in range(FOLDS)] if folded else []


def _part(count: int, size: float, steps: int) -> float:
    """Rows that one order of the batches passes, of so many rows, in batches of about that size."""
    return steps * count / batches_an_epoch(count, size)


def own_passes(rows: int, validation: int) -> Passes:
    """Rows of the training of a task's own weights, and of its folds; arguments as of `train_passes`."""
    settings = OwnWeightsSettings().for_rows(rows)
    rest = _rests(rows, validation)
    steps = settings.steps + sum(settings.for_part(count, of=rows).steps for count in rest)
    return Passes(rows if rest else 0, steps * min(settings.batch, rows))


def tuning_seconds(rows: int, validation: int, tokens: float) -> float:
    """Of a tuning by `auto` that finds something to gain: its first look, itself, its folds, and the guard.

    Args:
        rows: training rows, without those that are held out.
        validation: held-out rows.
        tokens: of a row on average.
    """
    settings = TuningSettings().for_rows(rows)
    parts = [settings.for_part(count, of=rows) for count in _rests(rows, validation)]
    looks = parts if parts else [settings] if validation >= FEWEST_CHOOSING else []
    steps = settings.steps + sum(part.steps for part in parts) + sum(part.for_look().steps for part in looks)
    return GUARD_SECONDS + steps * HELD_SECONDS + Passes(trained=steps * settings.batch).seconds(tokens)


def first_seconds(size: DatasetSize, *, gpu: bool = False) -> float:
    """Seconds from claim to the provisional version of one job, which is a readout alone; arguments as below."""
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
    """Seconds from claim to publication of one job.

    Args:
        size: of its dataset.
        unlabelled: texts of which some are to be labelled next.
        probed: whether the initialisation is chosen; one that was named is only measured.
        tuned: whether the hypernetwork learns too.
        gpu: whether the worker has one.
        method: that is asked for; empty or a base's own learns an embedding.
        readout: whether one may answer beside the embedding; then the learning curve is that of readouts.
    """
    tokens = min(size.mean_tokens, MAX_TOKENS)
    if method in WITHOUT_EMBEDDING:  # a readout alone reads every row once
        probe, train = Passes(), Passes(size.rows) if method == LINEAR else own_passes(size.rows, size.validation)
    else:
        probe = probe_passes(size.rows) if probed else Passes(min(size.rows, PROBE_ROWS))
        without_curve = size.regression or readout
        train = train_passes(size.rows, size.validation, tokens, regression=without_curve, gpu=gpu)
    if method == AUTO:  # all that it may try
        own = own_passes(size.rows, size.validation)
        train = Passes(train.scored + len(SMALL) * own.scored, train.trained + len(SMALL) * own.trained)
    evaluated = Passes(size.validation + size.test + unlabelled)
    work = probe.seconds(min(tokens, PROBE_TOKENS)) + train.seconds(tokens) + evaluated.seconds(tokens)
    work += tuning_seconds(size.rows, size.validation, tokens) if tuned else 0.0
    return START_SECONDS + work / (GPU_SPEEDUP if gpu else 1.0)
