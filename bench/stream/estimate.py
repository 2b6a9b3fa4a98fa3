"""The cost of the missing steps, from one short trial of each part on a task with texts of middling length.

A row costs more than in proportion to its tokens when it is long, and less when it is short: a task near the mean is
right for the sum.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from bench.stream.learning import begin, earlier_tasks, from_hex
from bench.stream.material import Material
from bench.stream.methods import LORA, LORA_RECIPE, METHODS
from bench.stream.sharing import Journal, Stream
from bench.stream.state import State
from bench.stream.tasks import in_order
from bench.transfer.methods import baseline, fit
from onboard.bases.load import fresh_engine
from onboard.guard import GuardSettings, Step, guard
from onboard.model.batch import TrainingSet
from onboard.model.batched import log_probabilities
from onboard.model.protected import ProtectedTask, Protection
from onboard.train.settings import TuningSettings
from onboard.train.tuning import tune

TRIAL_STEPS: Final = 4
TRIAL_TEST_ROWS: Final = 64
FOLDS_COST: Final = 1.5  # of probe and training, once more in folds
FOLDS_TUNED: Final = 3.0  # tunings on all rows that those of the folds come to: four with three quarters of the steps


@dataclass(frozen=True)
class Rates:
    """Seconds of one core, whatever else runs at the time.

    Args:
        begin: probe and training, per token of a row on average.
        tuned: a step of a tuning with its regulariser, of `TuningSettings`.
        naive: one without.
        guarded: an earlier task's part of a guard that accepts at once.
        lora: the whole training, per token.
        tested: a row, per token.
    """

    begin: float
    tuned: float
    naive: float
    guarded: float
    lora: float
    tested: float


def measured_rates(material: Material, task: str, order: int) -> Rates:
    """Try each part once."""
    rows, engine = material.of(task, order), material.engine
    state = State.first(engine.hypernetwork, material.base.known_rows)
    begin(material, task, order, state)  # warms up everything that is loaded once
    begun = begin(material, task, order, state)
    z, trie, earlier = from_hex(begun["embedding"]), engine.trie(begun["words"]), earlier_tasks(material, order, state)
    to_tune_with, to_judge_by = material.canaries
    short = replace(TuningSettings(), steps=TRIAL_STEPS)
    held = list(earlier)

    def tuned(others: Sequence[ProtectedTask]) -> float:
        started = time.process_time()
        tune(engine, TrainingSet(rows.labelled, trie), z, Protection(others, to_tune_with), short, order)
        return (time.process_time() - started) / TRIAL_STEPS

    looked_at = earlier[: GuardSettings().most_sources]
    started = time.process_time()
    guard(
        engine, Step(engine.hypernetwork, engine.hypernetwork, z), Protection(looked_at, to_judge_by), seed=order
    )  # what has not changed is accepted at once
    guarded = (time.process_time() - started) / max(1, len(looked_at))
    started = time.process_time()
    log_probabilities(engine, rows.test_ids[:TRIAL_TEST_ROWS], z, trie)
    tested = (time.process_time() - started) / min(TRIAL_TEST_ROWS, len(rows.test_ids))
    own = fresh_engine(material.base)
    learner, recipe = baseline(LORA, own, LORA_RECIPE), replace(LORA_RECIPE, steps=TRIAL_STEPS)
    started = time.process_time()
    fit(learner, rows.labelled.ids, rows.labelled.targets, own.trie(rows.bench.words), recipe, order)
    lora = (time.process_time() - started) / recipe.steps_for(len(rows.labelled.ids))
    steps = LORA_RECIPE.steps_for(len(rows.labelled.ids))
    return Rates(
        begin=sum(begun["seconds"].values()) / rows.tokens, tuned=tuned(held), naive=tuned([]), guarded=guarded,
        lora=steps * lora / rows.tokens, tested=tested / rows.tokens,
    )  # fmt: skip


def lines(material: Material, streams: Sequence[Stream], names: Sequence[str], journal: Journal) -> list[str]:
    """Tasks that are missing and core hours, by method."""
    there = journal.steps()
    missing = {
        stream: range(len(there.get(stream, [])), len(names))
        for stream in streams if len(there.get(stream, [])) < len(names)
    }  # fmt: skip
    if not missing:
        return ["everything is there"]
    order = next(iter(missing)).order
    tokens = {task: material.of(task, order).tokens for task in names}
    mean = sum(tokens.values()) / len(tokens)
    rates = measured_rates(material, min(names, key=lambda task: abs(tokens[task] - mean)), order)
    text, total = [], 0.0
    for method in dict.fromkeys(stream.method for stream in missing):
        of = {stream: places for stream, places in missing.items() if stream.method == method}
        hours = sum(seconds(material, stream, names, places, rates) for stream, places in of.items()) / 3600
        text.append(f"{method:13s} {sum(map(len, of.values())):4d} tasks  {hours:6.2f} core hours")
        total += hours
    count = sum(map(len, missing.values()))
    return [*text, f"{'all':13s} {count:4d} tasks  {total:6.2f} core hours; a guard that goes below a whole step: more"]


def seconds(material: Material, stream: Stream, names: Sequence[str], places: range, rates: Rates) -> float:
    """Of the tasks at these places of a stream."""
    order = in_order(names, stream.order)
    tokens = [material.of(task, stream.order).tokens for task in order]
    counts = [len(material.of(task, stream.order).test) for task in order]
    tests = [rates.tested * length * count for length, count in zip(tokens, counts, strict=True)]
    method, total = METHODS[stream.method], 0.0
    for place in places:
        if stream.method == LORA:
            total += rates.lora * tokens[place] + tests[place]
            continue
        total += rates.begin * tokens[place] + 2 * tests[place]  # where it starts, and where it ends
        if method.guard:
            total += FOLDS_COST * rates.begin * tokens[place]
        if method.tuning:
            total += method.tuning.for_rows(material.shots).steps * (
                rates.tuned if method.tuning.beta else rates.naive
            ) + sum(tests[:place])
        if method.guard and method.tuning:
            total += FOLDS_TUNED * method.tuning.for_rows(material.shots).steps * rates.tuned
            total += rates.guarded * (min(len(material.base.sources), method.guard.most_sources) + place)
    return total
