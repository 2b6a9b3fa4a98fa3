"""The way of one job: check → probe → train → evaluate → publish. Only this module knows the stages' order.

Each stage's output is stored under a key of everything it depends on (dataset, head, seed, code), so a restarted job
goes on after the last finished stage.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from onboard.bases.fingerprints import pack_fingerprint
from onboard.candidates import collect_candidates, named_candidate
from onboard.data.limits import HOLDOUT_FREE_ROWS
from onboard.domain.job import Job, Stage
from onboard.domain.progress import Progress
from onboard.domain.task import BaseRecord
from onboard.errors import DamagedError, NotFoundError
from onboard.judge import judge
from onboard.labelling import labelling
from onboard.model.memory import memory_trouble_told
from onboard.probe.candidates import ProbeResult
from onboard.probe.choice import ProbeSettings, choose, measure_named
from onboard.probe.evaluator import Evaluator
from onboard.publish import publish
from onboard.register import register_base
from onboard.registry.snapshots import StageOutputRepository
from onboard.services import Services
from onboard.train.fewshot import FewShotSettings, LabelledRows
from onboard.train.learning import learn
from onboard.train.suspects import warning_of
from onboard.version import code_version
from onboard.workbench import Workbench, prepare

FIXED_STEPS_ROWS = 128  # with more of them there are held-out rows enough to choose where training stops
_NOTE_EVERY_STEPS = 10

Output = dict[str, Any]


@dataclass
class Run:
    """One attempt at a job: what it works on and what its stages have left so far."""

    job: Job
    services: Services
    progress: Progress
    base: BaseRecord
    bench: Workbench
    seconds: dict[str, float] = field(default_factory=dict)
    halved: list[dict[str, int]] = field(default_factory=list)

    @property
    def settings(self) -> FewShotSettings:
        """How the embedding is trained."""
        return FewShotSettings()

    def tell_of_halving(self, rows: int, fewer: int) -> None:
        """The GPU's memory was too small; the report says so too."""
        self.halved.append({"rows": rows, "rows_at_once": fewer})
        self.progress.note(
            f"the GPU's memory is too small for {rows} rows at once: going on with {fewer}", rows_at_once=fewer
        )


def preload(services: Services) -> None:
    """Load the default base, so that the first job of a worker starts warm."""
    from onboard.bases import find_base
    from onboard.bases.load import load_engine

    load_engine(find_base(services.settings.base), services.device)


@memory_trouble_told("this job")
def run(job: Job, services: Services, progress: Progress) -> None:
    """Run a claimed job to its published version.

    Raises:
        OnboardError: what is wrong with it; FencedError and CancelledError pass through.
    """
    started = time.monotonic()
    progress.stage_started(Stage.CHECK)
    bench = prepare(job.spec, services)
    base = register_base(services, bench.base)
    seconds = round(time.monotonic() - started, 3)
    rows = {
        "train": len(bench.dataset.train),
        "validation": len(bench.dataset.validation),
        "test": len(bench.dataset.test),
    }
    progress.stage_finished(Stage.CHECK, seconds, {"rows": rows, "labels": len(bench.words)})
    attempt = Run(job, services, progress, base, bench, {"check": seconds})
    for at_once in (bench.trained_at_once, bench.scored_at_once):
        at_once.on_halved = attempt.tell_of_halving
    probed = _stage(attempt, Stage.PROBE, lambda: _probe(attempt))
    trained = _stage(attempt, Stage.TRAIN, lambda: _train(attempt, probed))
    found = _stage(attempt, Stage.EVALUATE, lambda: _evaluate(attempt, probed, trained))
    progress.stage_started(Stage.PUBLISH)
    progress.raise_if_cancelled_or_fenced()
    publish(attempt, probed, trained, found)


def _stage(attempt: Run, stage: Stage, work: Callable[[], Output]) -> Output:
    """The stage's stored output, or the stage run now and its output stored."""
    attempt.progress.raise_if_cancelled_or_fenced()
    key = _key(attempt, stage)
    stored = _stored(attempt, key)
    if stored is not None:
        attempt.seconds[stage.value] = stored["seconds"]
        attempt.progress.note(f"{stage.value}: resumed from the output of an earlier attempt")
        return stored
    attempt.progress.stage_started(stage)
    started = time.monotonic()
    output = {**work(), "halved": attempt.halved}
    attempt.halved = []
    seconds = round(time.monotonic() - started, 3)
    attempt.seconds[stage.value] = output["seconds"] = seconds
    artifact = attempt.services.store(json.dumps(output).encode(), "stage_output")
    with attempt.services.database.write() as session:
        StageOutputRepository(session).put(key, attempt.job.id, stage, artifact)
    attempt.progress.stage_finished(stage, seconds, output["numbers"])
    return output


def _stored(attempt: Run, key: str) -> Output | None:
    with attempt.services.database.read() as session:
        artifact = StageOutputRepository(session).get(key)
    if artifact is None:
        return None
    try:
        output: Output = json.loads(attempt.services.artifacts.get(artifact))
    except (NotFoundError, DamagedError):
        return None  # collected, or damaged: the stage is run again
    return output


def _key(attempt: Run, stage: Stage) -> str:
    depends = [
        attempt.job.id, stage.value, attempt.job.spec.to_json(), attempt.base.digest, attempt.base.head, code_version()
    ]  # fmt: skip
    return hashlib.sha256(json.dumps(depends, sort_keys=True).encode()).hexdigest()


def _probe(attempt: Run) -> Output:
    """Choose the initialisation; a named one is only measured, and the label words of a task's version are mapped."""
    spec, bench = attempt.job.spec, attempt.bench
    rows = bench.probed(spec.seed)
    fingerprint = bench.fingerprint(bench.encode(rows), bench.targets(rows))
    evaluator = bench.evaluator(rows, attempt.progress.raise_if_cancelled_or_fenced)
    result, how = _start(attempt, evaluator, fingerprint)
    chosen = result.chosen
    return {
        "z": result.z.tolist(),
        "words": list(chosen.words),
        "fingerprint": None if fingerprint is None else pack_fingerprint(fingerprint),
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
        "numbers": {
            "chosen": chosen.embedding,
            "loss": chosen.loss,
            "candidates": len(result.scores),
            "rows_scored": evaluator.passes,
            "rows_trained": evaluator.trained,
        },
    }


def _start(attempt: Run, evaluator: Evaluator, fingerprint: np.ndarray | None) -> tuple[ProbeResult, Output]:
    """The choice, and how it was made."""
    spec, services, base, head = attempt.job.spec, attempt.services, attempt.bench.base, attempt.base.head
    if spec.init != "auto":
        named = named_candidate(services, base, head, spec.seed, spec.init, fingerprint)
        how = {"reason": "asked for", "strategy": None, "prefilter": None}
        return measure_named(evaluator, named), how
    collected = collect_candidates(services, base, head, spec.seed, fingerprint)
    strategy = spec.options.get("probe", "race")
    settings = ProbeSettings(exhaustive=strategy == "exhaustive")
    result = choose(evaluator, collected.candidates, np.arange(evaluator.rows), settings)
    prefilter = {"considered": collected.considered, "kept": collected.kept}
    return result, {"reason": None, "strategy": strategy, "prefilter": prefilter}


def _train(attempt: Run, probed: Output) -> Output:
    """Train z on all training rows; without held-out rows, train it on folds as well."""
    bench, seed, checkpoint = attempt.bench, attempt.job.spec.seed, attempt.progress.raise_if_cancelled_or_fenced
    train, validation = bench.dataset.train, bench.dataset.validation
    settings = attempt.settings.for_rows(len(train))
    if bench.buckets:
        settings = replace(settings, curve=())  # it is one of accuracy
    rows = LabelledRows(bench.encode(train), bench.targets(train))
    few = not validation and len(train) <= HOLDOUT_FREE_ROWS and not bench.dataset.one_row_each
    many = bool(validation) and len(train) > FIXED_STEPS_ROWS
    learned = learn(
        bench.engine, np.array(probed["z"], dtype=np.float32), rows, bench.engine.trie(probed["words"]), settings,
        seed, bench.dataset, cross_validated=few,
        held=LabelledRows(bench.encode(validation), bench.targets(validation)) if many else None,
        on_step=_told(attempt, "train", settings.steps), before_batch=checkpoint,
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
        "warnings": [warning_of(suspects, bench.dataset)] if suspects else [],
        "numbers": {"loss": trained.losses[-1], "z_norm": trained.norms[-1], "padding_share": trained.padding_share},
    }


def _told(attempt: Run, what: str, steps: int) -> Callable[[int, float], None]:
    def on_step(step: int, loss: float) -> None:
        attempt.progress.raise_if_cancelled_or_fenced()
        if step % _NOTE_EVERY_STEPS == 0:
            attempt.progress.note(f"{what} step {step}/{steps}", loss=round(loss, 4))

    return on_step


def _evaluate(attempt: Run, probed: Output, trained: Output) -> Output:
    """Metrics, baselines, weakness, and the comparison with the present version."""
    return judge(attempt.bench, attempt.services, attempt.job.spec, probed, trained, attempt.progress)
