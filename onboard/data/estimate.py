"""How long a job will take, roughly: the rows that go through the model, times what a row costs.

Rows are counted as the stages count them. Their settings (`onboard.probe`, `onboard.train`) come with torch, for which
`onboard check` has no time; so their numbers stand here once more, and a test compares them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from onboard.data.limits import HOLDOUT_FREE_ROWS, PROBE_ROWS, PROBE_TOKENS

START_SECONDS: Final = 8.0  # starting a worker, importing torch, loading the base, publishing
TOKENS_PER_CHARACTER: Final = 0.25  # where no tokenizer is at hand

# Of a row on two cores with `mini`, in float32; where the CPU has bfloat16 a training takes two thirds of that. What
# does not grow with the tokens is the label words' share, and what each step costs beside its rows.
SCORED_SECONDS: Final = 2e-3
SCORED_SECONDS_PER_TOKEN: Final = 1.4e-4
TRAINED_SECONDS: Final = 6.5e-3
TRAINED_SECONDS_PER_TOKEN: Final = 2.4e-4  # with the padding
CURVE_SECONDS: Final = 23.0  # that a training may take with its curve: see `onboard.train.learning`
GPU_SPEEDUP: Final = 20.0

CANDIDATES: Final = 23  # of the probe with `mini` and no tasks of one's own
SPARED: Final = 2  # of them, `random` and `mean`, stay to the end of the race
FIRST_ROWS: Final = 8  # of the race
STANDING: Final = 4  # candidates that stay to the end whatever their losses
FINALISTS: Final = 4  # three, and the better of `random` and `mean`
MIXED_TRAININGS: Final = 3  # of the mixture: on each half, and on all rows
FINAL_STEPS: Final = 10
FINAL_BATCH_ROWS: Final = 4
FEWEST_FINAL_ROWS: Final = 16

STEPS: Final = 80
BATCH_ROWS: Final = 2
PASSES: Final = 2
MOST_BATCH_ROWS: Final = 8
MOST_STEPS: Final = 400
ORDERS: Final = 2
FOLDS: Final = 4
FEWEST_FOLDED_ROWS: Final = 8
FEWEST_CURVE_ROWS: Final = 16
CURVE_SHARE: Final = 0.5
FEWEST_CHOOSING: Final = 16
MOST_CHOOSING: Final = 256
TRIED: Final = 5  # the start, and shares of the way that training went


@dataclass(frozen=True, slots=True)
class Passes:
    """Rows that go through the model, those of a candidate or of an order of the batches counted on their own.

    Args:
        scored: forward only.
        trained: forward and back.
    """

    scored: float = 0.0
    trained: float = 0.0

    def seconds(self, tokens: float) -> float:
        """What they take, of so many tokens each."""
        scored = SCORED_SECONDS + SCORED_SECONDS_PER_TOKEN * tokens
        return self.scored * scored + self.trained * (TRAINED_SECONDS + TRAINED_SECONDS_PER_TOKEN * tokens)


def probe_passes(rows: int) -> Passes:
    """Rows that choose the initialisation: of a race in which nobody falls behind early, and of its last round.

    Args:
        rows: training rows.
    """
    rows = min(rows, PROBE_ROWS)
    standing, count = CANDIDATES, min(FIRST_ROWS, rows)
    raced = standing * count
    while count < rows:
        standing = min(standing, SPARED + max(STANDING, (standing + 1) // 2))
        raced, count = raced + standing * (min(2 * count, rows) - count), min(2 * count, rows)
    if rows < FEWEST_FINAL_ROWS:
        return Passes(raced)
    trainings = 2 * FINALISTS + MIXED_TRAININGS
    return Passes(raced + (FINALISTS + 1) * rows, trainings * FINAL_STEPS * FINAL_BATCH_ROWS)


def train_passes(rows: int, validation: int, tokens: float, *, regression: bool = False, gpu: bool = False) -> Passes:
    """Rows of the training, its folds and its learning curve.

    Args:
        rows: training rows, without those that are held out.
        validation: held-out rows.
        tokens: of a row on average.
        regression, gpu: what decides about the learning curve.
    """
    batch = max(BATCH_ROWS, min(MOST_BATCH_ROWS, math.ceil(PASSES * rows / STEPS)))
    steps = max(STEPS, min(MOST_STEPS, math.ceil(PASSES * rows / batch)))
    trained = ORDERS * _part(rows, batch, steps)
    if validation or not FEWEST_FOLDED_ROWS <= rows <= HOLDOUT_FREE_ROWS:
        if validation < FEWEST_CHOOSING:
            return Passes(trained=trained)
        choosing = min(validation, MOST_CHOOSING)
        halves = [rows - rows // 2, rows // 2]
        with_curve = trained + sum(_part(count, batch * count / rows, steps) for count in halves)
        if not regression and (gpu or affordable_curve(with_curve, tokens)):
            return Passes((TRIED + 2) * choosing, with_curve)
        return Passes(TRIED * choosing, trained)
    rest = [rows - len(range(fold, rows, FOLDS)) for fold in range(FOLDS)]
    folded = trained + sum(_part(count, batch * count / rows, steps) for count in rest)
    halves = [round(CURVE_SHARE * count) for count in rest]
    with_curve = folded + sum(_part(count, batch * count / rows, steps) for count in halves)
    if rows >= FEWEST_CURVE_ROWS and not regression and (gpu or affordable_curve(with_curve, tokens)):
        return Passes((TRIED + 1) * rows, with_curve)
    return Passes(TRIED * rows, folded)


def _part(count: int, size: float, steps: int) -> float:
    """Rows that one order of the batches passes, of so many rows, in batches of about that size."""
    return steps * count / min(count, max(1, int(count / size)))


def affordable_curve(trained: float, tokens: float) -> bool:
    """Whether a CPU has time for a training with its learning curve: of so many rows, of so many tokens each."""
    return Passes(trained=trained).seconds(tokens) <= CURVE_SECONDS


def estimate_seconds(
    rows: int,
    mean_tokens: float,
    *,
    validation: int = 0,
    test: int = 0,
    unlabelled: int = 0,
    regression: bool = False,
    probed: bool = True,
    max_tokens: int = 128,
    gpu: bool = False,
) -> float:
    """Seconds from claim to publication of one job.

    Args:
        rows: training rows, without those that are held out.
        mean_tokens: tokens of a row on average, before cutting.
        validation: rows of validation, submitted or held out.
        test: rows of the test split.
        unlabelled: texts of which some are to be labelled next.
        regression: whether the labels are numbers.
        probed: whether the initialisation is chosen; one that was named is only measured.
        max_tokens: tokens after which a row is cut.
        gpu: whether the worker has one.
    """
    tokens = min(mean_tokens, max_tokens)
    probe = probe_passes(rows) if probed else Passes(min(rows, PROBE_ROWS))
    train = train_passes(rows, validation, tokens, regression=regression, gpu=gpu)
    evaluated = Passes(validation + test + unlabelled)
    work = probe.seconds(min(tokens, PROBE_TOKENS)) + train.seconds(tokens) + evaluated.seconds(tokens)
    return START_SECONDS + work / (GPU_SPEEDUP if gpu else 1.0)


def estimate_of(report: Mapping[str, Any], **more: Any) -> float | None:
    """Seconds by what the check of a dataset said of it; None where it says too little.

    Args:
        report: what `onboard.data.report.CheckReport.to_json` gives, here or in an earlier version.
        more: as of `estimate_seconds`.
    """
    rows, characters, validation = (report.get(part) for part in ("rows", "characters", "validation"))
    if not (rows and characters and validation):
        return None
    held_out = validation["held_out"]
    return estimate_seconds(
        rows["train"] - held_out, characters["mean"] * TOKENS_PER_CHARACTER, validation=held_out + rows["validation"],
        test=rows["test"], regression=report.get("kind") == "regression", **more,
    )  # fmt: skip
