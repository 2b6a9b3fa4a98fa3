"""One run: train a method on a cell's rows, test it, and tell it as one row."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import torch

from bench.transfer.cells import Run
from bench.transfer.material import SETTINGS, Cell, Cells, Start
from bench.transfer.methods import answers, baseline, fit, hypernetwork_and_embedding
from bench.transfer.recipes import Recipe, RecipeKey, rows_a_step
from onboard.bases.load import fresh_engine
from onboard.evaluate.baselines import predict_baselines
from onboard.model.batched import log_probabilities
from onboard.train.fewshot import FewShotSettings, LabelledRows
from onboard.train.learning import learn

Row = dict[str, Any]


@dataclass(frozen=True)
class Learned:
    """What came of a training.

    Args:
        answers: the label of each test row (n,).
        row_passes: rows that were trained on, each time they were.
        start: where an embedding started.
    """

    answers: np.ndarray
    row_passes: int = 0
    start: Start | None = None


def measure(cells: Cells, run: Run, recipes: Mapping[RecipeKey, Recipe]) -> Row:
    """Train and test.

    Args:
        cells: where the rows come from.
        run: what to train.
        recipes: by method and name.
    """
    cell = cells.of(run)
    torch.manual_seed(run.seed)
    started = time.monotonic()
    learned = _learn(cell, run, recipes)
    right = learned.answers == cell.truth
    row = {
        **asdict(run),
        "accuracy": round(100.0 * float(right.mean()), 3),
        "rows": len(right),
        "correct": packed(right),
    }
    if learned.start is not None:
        begun = learned.start
        row |= {
            "chosen": begun.embedding, "words": list(begun.words), "probe_passes": begun.passes, "alarm": begun.alarm,
        }  # fmt: skip
    return row | {"row_passes": learned.row_passes, "seconds": round(time.monotonic() - started, 2)}


def _learn(cell: Cell, run: Run, recipes: Mapping[RecipeKey, Recipe]) -> Learned:
    if run.method == "tfidf":
        found = predict_baselines(cell.dataset, cell.dataset.train, cell.test, run.seed)
        return Learned(found["tfidf_logistic_regression"].argmax(1))
    if run.method == "embedding":
        return embedding_only(cell, cell.start(run.start), run.seed)
    recipe, engine = recipes[run.method, run.recipe], fresh_engine(cell.base)
    if run.method == "hypernetwork":
        start = cell.start(run.start)
        learner, words = hypernetwork_and_embedding(engine, start.z, recipe), start.words
    else:
        start, words = None, cell.bench.words
        learner = baseline(run.method, engine, recipe)
    trie = engine.trie(words)
    passes = fit(learner, cell.ids, cell.targets, trie, recipe, run.seed)
    return Learned(answers(learner, cell.test_ids, trie), passes, start)


def embedding_only(cell: Cell, start: Start, seed: int) -> Learned:
    """The service's own training of z, and its answers: the only place here that knows how it is called."""
    bench, settings = cell.bench, few_shot_settings(len(cell.ids))
    trie = bench.engine.trie(start.words)
    learned = learn(
        bench.engine, start.z, LabelledRows(cell.ids, cell.targets), trie, settings, seed, cell.dataset,
        cross_validated=False, at_once=bench.trained_at_once,
        scored_at_once=bench.scored_at_once,
    )  # fmt: skip
    scores = log_probabilities(bench.engine, cell.test_ids, learned.trained.z, trie, at_once=bench.scored_at_once)
    return Learned(scores.argmax(1), embedding_passes(len(cell.ids)), start)


def few_shot_settings(rows: int) -> FewShotSettings:
    """The service's recipe for so many rows. Its folds and its learning curve, which decide nothing, are left out."""
    return replace(FewShotSettings().for_rows(rows), curve=())


def embedding_passes(rows: int) -> int:
    """Rows that the embeddings of all orders are trained on together, each time they are."""
    settings = few_shot_settings(rows)
    return round(settings.steps * settings.seeds * rows_a_step(rows, settings.batch))


def settings_of(run: Run, recipes: Mapping[RecipeKey, Recipe]) -> Row:
    """What the run's numbers depend on, beside the base and the rows."""
    if run.method == "tfidf":
        return {}
    found = asdict(few_shot_settings(run.shots) if run.method == "embedding" else recipes[run.method, run.recipe])
    return found | ({"probe": asdict(SETTINGS)} if run.start == "auto" else {})


def packed(right: np.ndarray) -> str:
    """Bools (n,) as hexadecimal digits, eight rows a byte."""
    return np.packbits(right).tobytes().hex()


def unpacked(row: Row) -> np.ndarray:
    """Which test rows a run got right (n,)."""
    found = np.unpackbits(np.frombuffer(bytes.fromhex(row["correct"]), dtype=np.uint8), count=row["rows"])
    return found.astype(np.bool_)
