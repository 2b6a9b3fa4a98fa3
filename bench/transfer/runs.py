"""One run: train a method on a cell's rows, test it, and tell it as one row; seconds are the processor's."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any, Final

import numpy as np
import torch

from bench.folds import STEP, Folds
from bench.transfer.cells import AUTO, OURS, Run
from bench.transfer.material import SETTINGS, Cell, Cells, Embedding, Start
from bench.transfer.methods import answers, baseline, fit
from bench.transfer.recipes import Recipe, RecipeKey, rows_a_step
from onboard.bases.load import fresh_engine
from onboard.evaluate.baselines import predict_baselines
from onboard.model.batch import LabelledRows
from onboard.model.batched import log_probabilities
from onboard.model.scoring import LabelTrie
from onboard.train.crossvalidation import FOLDS
from onboard.train.fewshot import FewShotSettings
from onboard.train.holding import EarlierEmbedding
from onboard.train.learning import learn
from onboard.train.step_length import SHARES
from onboard.train.tuning import Tuned, TuningSettings, tune

Row = dict[str, Any]
MOST_FOLDED: Final = 100  # rows; with more, folds take hours, and there is little that a step could spoil


@dataclass(frozen=True)
class Learned:
    """What came of a training.

    Args:
        answers: the label of each test row (n,).
        row_passes: rows that were trained on, each time they were.
        start: where an embedding started.
        seconds: of what was done before, for another run.
        told: what else the row tells.
    """

    answers: np.ndarray
    row_passes: int = 0
    start: Start | None = None
    seconds: float = 0.0
    told: Row = field(default_factory=dict)


def measure(cells: Cells, run: Run, recipes: Mapping[RecipeKey, Recipe]) -> Row:
    """Train and test.

    Args:
        cells: where the rows come from.
        run: what to train.
        recipes: by method and name.
    """
    cell = cells.of(run)
    torch.manual_seed(run.seed)
    started = time.process_time()
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
    seconds = time.process_time() - started + learned.seconds
    return row | learned.told | {"row_passes": learned.row_passes, "seconds": round(seconds, 2)}


def _learn(cell: Cell, run: Run, recipes: Mapping[RecipeKey, Recipe]) -> Learned:
    if run.method == "tfidf":
        found = predict_baselines(cell.dataset, cell.dataset.train, cell.test, run.seed)
        return Learned(found["tfidf_logistic_regression"].argmax(1))
    if run.method in OURS:
        return _ours(cell, run)
    recipe, engine = recipes[run.method, run.recipe], fresh_engine(cell.base)
    learner, trie = baseline(run.method, engine, recipe), engine.trie(cell.bench.words)
    passes = fit(learner, cell.ids, cell.targets, trie, recipe, run.seed)
    return Learned(answers(learner, cell.test_ids, trie), passes)


def _ours(cell: Cell, run: Run) -> Learned:
    """The service's own training of z, its tuning where the hypernetwork is to learn too, and its answers.

    Up to `MOST_FOLDED` rows, as much of the step is taken as the folds ask for; beside it stands what `auto` would have
    answered, which may have left it at the embedding.
    """
    begun, bench, before = time.process_time(), cell.bench, 0.0
    start, rows, passes = cell.start(run.start), LabelledRows(cell.ids, cell.targets), embedding_passes(len(cell.ids))
    trie = bench.engine.trie(start.words)
    if run.start in cell.trained:
        before = cell.trained[run.start].seconds
    else:
        z = _embedding(cell, start, rows, trie, run.seed)
        cell.trained[run.start] = Embedding(z, time.process_time() - begun)
    engine, z = bench.engine, cell.trained[run.start].z
    answered = partial(log_probabilities, ids=cell.test_ids, trie=trie, at_once=bench.scored_at_once)
    if run.method != "hypernetwork":
        return Learned(answered(engine, z=z).argmax(1), passes, start, before)
    tuned_on = partial(_tuned, cell, trie, run.seed)
    tuned, told, chosen = tuned_on(z, rows), Row(), {"tuned": 1.0}
    if len(cell.ids) <= MOST_FOLDED:
        folds = Folds(engine, bench, rows, start.z, trie, few_shot_settings(len(cell.ids)), run.seed)
        worth, losses = folds.worth(z, bool(start.alarm)), folds.losses(SHARES, tuned_on)
        chosen = {"tuned": losses.wanted(at_all=True), "auto": losses.wanted(at_all=False) if worth.tune else 0.0}
        told = {
            "by_share": losses.to_json(), "worth": worth.reason, "proposed": chosen["tuned"],
            "auto_proposed": chosen["auto"],
        }  # fmt: skip
    found = {}
    for share in set(chosen.values()):
        part = tuned.shortened(engine.hypernetwork, z, share)
        found[share] = answered(engine.under(part.hypernetwork), z=part.z).argmax(1)
    if "auto" in chosen:
        told["auto"] = packed(found[chosen["auto"]] == cell.truth)
    return Learned(found[chosen["tuned"]], passes + tuning_passes(len(cell.ids)), start, before, told)


def _tuned(cell: Cell, trie: LabelTrie, seed: int, z: np.ndarray, rows: LabelledRows) -> Tuned:
    """The service's tuning from an embedding on the rows of the cell, or on a part of them."""
    settings = TuningSettings().for_part(len(rows.ids), of=len(cell.ids))
    return tune(cell.bench.engine, z, rows, trie, _sources(cell), settings, seed, canaries=[])


def _embedding(cell: Cell, start: Start, rows: LabelledRows, trie: LabelTrie, seed: int) -> np.ndarray:
    bench, settings = cell.bench, few_shot_settings(len(cell.ids))
    learned = learn(
        bench.engine, start.z, rows, trie, settings, seed, cell.dataset, cross_validated=False,
        at_once=bench.trained_at_once, scored_at_once=bench.scored_at_once,
    )  # fmt: skip
    return learned.trained.z


def _sources(cell: Cell) -> list[EarlierEmbedding]:
    """What holds the hypernetwork in place: the embeddings that the base was shipped with."""
    base, engine = cell.base, cell.bench.engine
    return [
        EarlierEmbedding(base.embeddings[each.name], engine.trie(each.words), engine.hypernetwork)
        for each in base.sources
    ]


def few_shot_settings(rows: int) -> FewShotSettings:
    """The service's recipe for so many rows. Its folds and its learning curve, which decide nothing, are left out."""
    return replace(FewShotSettings().for_rows(rows), curve=())


def embedding_passes(rows: int) -> int:
    """Rows that the embeddings of all orders are trained on together, each time they are."""
    settings = few_shot_settings(rows)
    return round(settings.steps * settings.seeds * rows_a_step(rows, settings.batch))


def tuning_passes(rows: int) -> int:
    """Rows that hypernetwork and embedding are tuned on after that, each time they are."""
    settings = TuningSettings().for_rows(rows)
    folds = FOLDS - 1 if rows <= MOST_FOLDED else 0  # as many as there are, each without its share of the rows
    return round((1 + folds) * settings.steps * rows_a_step(rows, settings.batch))


def settings_of(run: Run, recipes: Mapping[RecipeKey, Recipe]) -> Row:
    """What the run's numbers depend on, beside the base and the rows."""
    if run.method == "tfidf":
        return {}
    if run.method not in OURS:
        return asdict(recipes[run.method, run.recipe])
    found = asdict(few_shot_settings(run.shots)) | ({"probe": asdict(SETTINGS)} if run.start == AUTO else {})
    if run.method != "hypernetwork":
        return found
    found |= {"tuning": asdict(TuningSettings().for_rows(run.shots))}
    return found | ({"step": STEP} if run.shots <= MOST_FOLDED else {})


def packed(right: np.ndarray) -> str:
    """Bools (n,) as hexadecimal digits, eight rows a byte."""
    return np.packbits(right).tobytes().hex()


def unpacked(row: Row) -> np.ndarray:
    """Which test rows a run got right (n,)."""
    found = np.unpackbits(np.frombuffer(bytes.fromhex(row["correct"]), dtype=np.uint8), count=row["rows"])
    return found.astype(np.bool_)
