"""The way of one job: check → probe → train → [tune → guard] → evaluate → publish. Only this module knows the order."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import replace
from functools import partial

import numpy as np

from onboard.bases import find_base
from onboard.bases.fingerprints import pack_fingerprint
from onboard.data.splits import is_folded
from onboard.domain.job import Job, Stage
from onboard.domain.progress import Progress
from onboard.errors import ConflictError
from onboard.hypernetworks.register import register_base
from onboard.model.memory import memory_trouble_told
from onboard.pipeline.attempt import Output, Run
from onboard.pipeline.candidates import collect_candidates, named_candidate
from onboard.pipeline.evaluate import Judged, judge
from onboard.pipeline.guard import guard_newcomers, guard_stage
from onboard.pipeline.label_next import labelling
from onboard.pipeline.material import prepare
from onboard.pipeline.outcome import Outcome, outcome_of
from onboard.pipeline.publish import NewcomersError, publish
from onboard.pipeline.slot import HeadMovedError, take_slot
from onboard.pipeline.tune import tune_stage
from onboard.probe.candidates import ProbeResult, in_sorted
from onboard.probe.choice import ProbeSettings, choose, measure_named
from onboard.probe.evaluator import Evaluator
from onboard.services import Services
from onboard.train.fewshot import FewShotSettings
from onboard.train.learning import learn
from onboard.train.suspects import warning_of
from onboard.train.witnesses import known_finding
from onboard.versions.trained_rows import TrainedRows

MOST_STARTS = 3  # of an attempt whose base's head moves while it runs


def preload(services: Services) -> None:
    """Load the default base, so that the first job of a worker starts warm."""
    from onboard.bases.load import load_engine

    load_engine(find_base(services.settings.base), services.device)


@memory_trouble_told("this job")
def run(job: Job, services: Services, progress: Progress) -> None:
    """Run a claimed job to its published version.

    Raises:
        OnboardError: what is wrong with it; FencedError, CancelledError and SlotTakenError pass through.
    """
    for _ in range(MOST_STARTS):
        try:
            return _run(job, services, progress)
        except HeadMovedError as moved:
            progress.note(str(moved))
    raise ConflictError(
        f"The base's hypernetwork moved {MOST_STARTS} times while the job ran.", f"onboard jobs retry {job.id}"
    )


def _run(job: Job, services: Services, progress: Progress) -> None:
    """The stages under the head that the base has now. Raises HeadMovedError when that has to be done anew."""
    attempt = _check(job, services, progress)
    probed = attempt.stage(Stage.PROBE, lambda: _probe(attempt))
    attempt.bench = attempt.bench.without_witnesses(probed["known"])
    trained = attempt.stage(Stage.TRAIN, lambda: _train(attempt, probed), probed)
    alone = Judged(attempt.bench, job.spec, probed, trained, progress)
    tuned = guarded = None
    if job.spec.tune_hypernetwork != "never":
        tuned = attempt.stage(Stage.TUNE, lambda: tune_stage(attempt, probed, trained, alone), probed, trained)
    if tuned is not None and tuned["artifact"]:
        guarded = attempt.stage(
            Stage.GUARD, lambda: guard_stage(attempt, probed, trained, tuned), probed, trained, tuned
        )  # fmt: skip
    _publish(attempt, probed, trained, alone, tuned, guarded)


def _publish(
    attempt: Run, probed: Output, trained: Output, alone: Judged, tuned: Output | None, guarded: Output | None
) -> None:
    """Judge what the job has come to, and publish it; what was published while the guard ran is guarded before."""
    outcome, evaluated = outcome_of(attempt, trained, tuned, guarded), None
    while True:
        judged = alone if outcome.tuned is None else _judged(attempt, probed, outcome)
        if evaluated is None:
            before = alone if outcome.tuned else None
            work = partial(judge, judged, attempt.services, outcome.also_chosen, before)
            evaluated = attempt.stage(Stage.EVALUATE, work, probed, trained, tuned, guarded)
        attempt.progress.stage_started(Stage.PUBLISH)
        attempt.checkpoint()
        try:
            publish(attempt, probed, outcome, judged, evaluated)
        except NewcomersError as met:
            assert guarded is not None
            guarded = guard_newcomers(attempt, outcome, guarded, met.versions)
            outcome = outcome_of(attempt, trained, tuned, guarded)
            evaluated = evaluated if outcome.tuned else None
        else:
            return


def _check(job: Job, services: Services, progress: Progress) -> Run:
    """Load what the job works on. Whoever is sure to tune waits for the slot first, before anything is computed."""
    started = time.monotonic()
    progress.stage_started(Stage.CHECK)
    base = register_base(services, find_base(job.spec.base))
    if job.spec.tune_hypernetwork == "always":
        progress.raise_if_cancelled_or_fenced()
        take_slot(services, job.id, base)
    bench = prepare(job.spec, services, base)
    seconds = round(time.monotonic() - started, 3)
    rows = {
        "train": len(bench.dataset.train),
        "validation": len(bench.dataset.validation),
        "test": len(bench.dataset.test),
    }
    progress.stage_finished(Stage.CHECK, seconds, {"rows": rows, "labels": len(bench.words)})
    return Run(job, services, progress, base, bench, {"check": seconds})


def _judged(attempt: Run, probed: Output, outcome: Outcome) -> Judged:
    return Judged(outcome.bench, attempt.job.spec, probed, outcome.trained, attempt.progress)


def _probe(attempt: Run) -> Output:
    """Choose the initialisation; a named one is only measured, and the label words of a task's version are mapped."""
    spec, bench = attempt.job.spec, attempt.bench
    rows = bench.probed(spec.seed)
    fingerprint = bench.fingerprint(bench.encode(rows), bench.targets(rows))
    evaluator = bench.evaluator(rows, attempt.checkpoint)
    everything = np.unique(bench.hashes([*bench.dataset.train, *bench.dataset.validation, *bench.dataset.test]))
    result, how = _start(attempt, evaluator, fingerprint, everything)
    chosen = result.chosen
    return {
        "z": result.z.tolist(),
        "words": list(chosen.words),
        "fingerprint": pack_fingerprint(fingerprint),
        "init": {
            "chosen": chosen.embedding,
            "candidates": [score.to_json() for score in result.scores],
            "rows": chosen.rows,
            "overlap": result.overlap,
            **how,
            "ties": list(result.ties),
            "alarm": result.alarm,
            "weights": result.weights,
            "known_too": result.known_too,
        },
        "known": _known(attempt, everything, result.weights or [chosen.embedding]),
        "numbers": {
            "chosen": chosen.embedding,
            "loss": chosen.loss,
            "candidates": len(result.scores),
            "rows_scored": evaluator.passes,
            "rows_trained": evaluator.trained,
        },
    }


def _known(attempt: Run, rows: np.ndarray, start: Iterable[str]) -> list[int]:
    """Those of the job's rows (sorted hashes) that trained an embedding that its training starts from, or the head."""
    bench = attempt.bench
    trained = TrainedRows(attempt.services, bench.base)
    learned = np.isin(rows, np.concatenate([trained.of_start(start), trained.tuning(bench.head, exactly=True)]))
    known: list[int] = rows[learned | in_sorted(rows, bench.base.known_rows)].tolist()
    return known


def _start(attempt: Run, evaluator: Evaluator, fingerprint: np.ndarray, rows: np.ndarray) -> tuple[ProbeResult, Output]:
    """The choice, and how it was made; `rows` are the hashes of all rows of the job."""
    spec, services, base = attempt.job.spec, attempt.services, attempt.bench.base
    if spec.init != "auto":
        named = named_candidate(services, base, spec.seed, spec.init, fingerprint, rows)
        how = {"reason": "asked for", "strategy": None, "prefilter": None}
        return measure_named(evaluator, named), how
    collected = collect_candidates(services, base, spec.seed, fingerprint, rows)
    for reference, trouble in collected.unreadable.items():
        attempt.progress.note(f"{reference} was left out of the probe. {trouble}")
    strategy = spec.options.get("probe", "race")
    settings = ProbeSettings(exhaustive=strategy == "exhaustive")
    result = choose(evaluator, collected.candidates, np.arange(evaluator.rows), settings)
    prefilter = {"considered": collected.considered, "kept": collected.kept}
    return result, {"reason": None, "strategy": strategy, "prefilter": prefilter}


def _train(attempt: Run, probed: Output) -> Output:
    """Train z on all training rows; without held-out rows, train it on folds as well."""
    bench, seed, checkpoint = attempt.bench, attempt.job.spec.seed, attempt.checkpoint
    known = in_sorted(bench.hashes(bench.dataset.train), np.array(probed["known"], dtype=np.int64))
    train, validation = bench.dataset.train, bench.dataset.validation
    settings = FewShotSettings().for_rows(len(train))
    if bench.buckets:
        settings = replace(settings, curve=())  # it is one of accuracy
    rows = bench.labelled(train)
    learned = learn(
        bench.engine, np.array(probed["z"], dtype=np.float32), rows, bench.engine.trie(probed["words"]), settings,
        seed, bench.dataset, cross_validated=is_folded(bench.dataset),
        held=bench.labelled(validation) if validation else None, known=known,
        on_step=attempt.told("train", settings.steps), before_batch=checkpoint,
        at_once=bench.trained_at_once, scored_at_once=bench.scored_at_once,
    )  # fmt: skip
    trained, more = learned.trained, None if bench.buckets else learned.more_rows(rows.targets)
    suspects = [] if bench.buckets else learned.suspects(rows.targets)
    pool = attempt.job.spec.options.get("unlabelled", {})
    return {
        "z": trained.z.tolist(),
        "training": {
            **learned.to_json(),
            "method": attempt.bench.base.method,
            "learning_rate": settings.learning_rate,
        },
        "folds": learned.folds_to_json(),
        "more_rows": more.to_json() if more else None,
        "label_next": labelling(bench, pool, probed["words"], trained.z, checkpoint),
        "warnings": [
            *([warning_of(suspects, bench.dataset)] if suspects else []),
            *known_finding({"training": int(known.sum()) if is_folded(bench.dataset) else 0, **bench.left_out}),
        ],
        "numbers": {"loss": trained.losses[-1], "z_norm": trained.norms[-1], "padding_share": trained.padding_share},
    }
