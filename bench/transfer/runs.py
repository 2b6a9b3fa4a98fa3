"""One run: train a method on a cell's rows, test it, and tell it as one row; seconds are the processor's."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import partial

import numpy as np
import torch

from bench.harness.as_a_job import SETTINGS, STEP, Lesson
from bench.harness.as_if_new import shipped_tasks
from bench.harness.rows import Row, packed
from bench.transfer.cells import AUTO, OURS, TrainingRun
from bench.transfer.material import SETTINGS as PROBE
from bench.transfer.material import Cell, Cells, Embedding, Start
from bench.transfer.methods import answers, baseline, fit
from bench.transfer.recipes import Recipe, RecipeKey, rows_a_step
from onboard.bases.load import fresh_engine
from onboard.data.splits import held_out_of
from onboard.evaluate.baselines import predict_learned
from onboard.jobs.estimate import train_passes
from onboard.model.batched import log_probabilities
from onboard.model.protected import Protection
from onboard.model.rounding import has_bfloat16
from onboard.train.settings import FOLDS, SHARES, TuningSettings

BFLOAT16, FLOAT32 = "bfloat16", "float32"  # what ours multiply with the backbone in


@dataclass(frozen=True)
class Learned:
    """The result of a training.

    Args:
        answers: the label of each test row (n,).
        row_passes: rows that were trained on, each time they were.
        seconds: of an earlier training, for another run.
        told: what else the row tells.
    """

    answers: np.ndarray
    row_passes: int = 0
    seconds: float = 0.0
    told: Row = field(default_factory=dict)


def measure(
    cells: Cells,
    run: TrainingRun,
    recipes: Mapping[RecipeKey, Recipe],
    finished: Callable[[], Mapping[TrainingRun, Row]] = dict[TrainingRun, Row],
) -> Row:
    """Train and test.

    Args:
        cells: where the rows come from.
        run: what to train.
        recipes: by method and name.
        finished: the runs that are; what one of them trained from the same start is not trained again, and its seconds
            are not counted twice.
    """
    cell = cells.of(run)
    torch.manual_seed(run.seed)
    start = cell.start(run.start) if run.start else None
    if start is not None and (twin := same_training(run, start, finished())):
        return twin
    started = time.process_time()
    learned = learned_for(cell, run, recipes)
    right = learned.answers == cell.truth
    row = {
        **asdict(run),
        "accuracy": round(100.0 * float(right.mean()), 3),
        "rows": len(right),
        "correct": packed(right),
    }
    seconds = time.process_time() - started + learned.seconds
    if start is not None:
        row |= _told(start) | {"arithmetic": BFLOAT16 if has_bfloat16() else FLOAT32}
        seconds += start.seconds
    return row | learned.told | {"row_passes": learned.row_passes, "seconds": round(seconds, 2)}


def same_training(run: TrainingRun, start: Start, finished: Mapping[TrainingRun, Row]) -> Row | None:
    """The run's row where a finished one trained the same: auto took one of the starts that others are given.

    Args:
        run: that is to be told.
        start: of it.
        finished: rows by run.
    """
    other = start.embedding if run.start == AUTO else AUTO
    row = finished.get(replace(run, start=other))
    if row is None or (row["chosen"], row["words"]) != (start.embedding, list(start.words)):
        return None
    twin = {name: value for name, value in row.items() if name not in ("seconds", "settings")}
    return twin | asdict(run) | _told(start) | {"trained_as": other}


def _told(start: Start) -> Row:
    return {
        "chosen": start.embedding, "words": list(start.words), "probe_passes": start.passes, "alarm": start.alarm,
    }  # fmt: skip


def learned_for(cell: Cell, run: TrainingRun, recipes: Mapping[RecipeKey, Recipe]) -> Learned:
    """The trained parts for a run, on its cell."""
    if run.method == "tfidf":
        predicted = predict_learned(cell.dataset, cell.dataset.train, cell.test, run.seed)
        return Learned(predicted["tfidf_logistic_regression"].argmax(1))
    if run.method in OURS:
        return _ours(cell, run)
    recipe, engine = recipes[run.method, run.recipe], fresh_engine(cell.base)
    learner, trie = baseline(run.method, engine, recipe), engine.trie(cell.bench.words)
    passes = fit(learner, cell.ids, cell.targets, trie, recipe, run.seed)
    return Learned(answers(learner, cell.test_ids, trie), passes)


def _ours(cell: Cell, run: TrainingRun) -> Learned:
    """The service's own training of z, its tuning where the hypernetwork is to learn too, and its answers.

    The share of the step is chosen by held-out rows; next to it stands what `auto`
    would have answered, which may have left it at the embedding.
    """
    bench, before = cell.bench, 0.0
    start, engine = cell.start(run.start), bench.engine
    if run.start in cell.trained:
        before = cell.trained[run.start].seconds
    else:
        begun = time.process_time()
        lesson = Lesson(engine, bench, cell.own, start.z, engine.trie(start.words), run.seed)
        assert lesson.z is not None  # it is trained here, and its seconds are counted
        cell.trained[run.start] = Embedding(lesson, time.process_time() - begun)
    lesson, passes = cell.trained[run.start].lesson, embedding_passes(run.shots)
    answered = partial(log_probabilities, ids=cell.test_ids, trie=lesson.trie, at_once=bench.scored_at_once)
    if run.method != "hypernetwork":
        return Learned(answered(engine, task=lesson.z).argmax(1), passes, before, {"share": lesson.learned.share})
    tuned_on = partial(lesson.tuned, TuningSettings(), Protection(shipped_tasks(cell.base, engine)))
    tuned = tuned_on(lesson.z, lesson.rows)
    worth, losses = lesson.worth(), lesson.losses(SHARES, tuned, tuned_on)
    proposed, by_rule = losses.wanted(at_all=True), losses.wanted(at_all=False) if worth.tune else 0.0
    by_share = {}
    for share in {proposed, by_rule}:
        part = tuned.shortened(engine.hypernetwork, lesson.z, share)
        by_share[share] = answered(engine.under(part.hypernetwork), task=part.z).argmax(1)
    facts = {
        "by_share": losses.to_json(), "worth": worth.reason, "proposed": proposed, "auto_proposed": by_rule,
        "auto": packed(by_share[by_rule] == cell.truth),
    }  # fmt: skip
    return Learned(by_share[proposed], passes + tuning_passes(run.shots), before, facts)


def embedding_passes(rows: int) -> int:
    """Rows that the embedding and its folds are trained on, each time they are."""
    return round(train_passes(*_parted(rows), 0.0, regression=True).trained)


def tuning_passes(rows: int) -> int:
    """Rows that hypernetwork and embedding are tuned on after that, each time they are."""
    trained, held = _parted(rows)
    settings = TuningSettings().for_rows(trained)
    folds = 0 if held else FOLDS - 1  # as many as there are, each without its share of the rows
    return round((1 + folds) * settings.steps * rows_a_step(trained, settings.batch))


def _parted(rows: int) -> tuple[int, int]:
    """How many rows ours train on, and how many they hold out."""
    held = held_out_of(rows)
    return rows - held, held


def settings_of(run: TrainingRun, recipes: Mapping[RecipeKey, Recipe]) -> Row:
    """The settings that the run's numbers depend on, in addition to the base and the rows."""
    if run.method == "tfidf":
        return {}
    if run.method not in OURS:
        return asdict(recipes[run.method, run.recipe])
    settings = {**asdict(SETTINGS.for_rows(_parted(run.shots)[0])), "step": STEP}
    settings |= {"probe": asdict(PROBE)} if run.start == AUTO else {}
    if run.method != "hypernetwork":
        return settings
    return settings | {"tuning": asdict(TuningSettings().for_rows(_parted(run.shots)[0]))}
