"""The way of one job: check → probe → train → [tune → guard] → [choose] → evaluate → publish.

Only this module knows the order.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from onboard.bases import find_base
from onboard.domain.job import Job, Stage
from onboard.domain.methods import AUTO
from onboard.domain.progress import Progress
from onboard.domain.tried import MethodsJson
from onboard.errors import ConflictError
from onboard.model.memory import memory_trouble_told
from onboard.pipeline.attempt import Run
from onboard.pipeline.check import check_stage
from onboard.pipeline.choose import choose_stage
from onboard.pipeline.evaluate import Judged, judge
from onboard.pipeline.guard import guard_newcomers, guard_stage
from onboard.pipeline.outcome import Outcome, outcome_of
from onboard.pipeline.outputs import (
    ChooseOutput,
    EvaluateOutput,
    GuardOutput,
    ProbeOutput,
    ProposedStep,
    TrainOutput,
    TuneOutput,
    tune_output,
)
from onboard.pipeline.own_weights import own_start, under_first_head
from onboard.pipeline.probe import probe_stage
from onboard.pipeline.publish import NewcomersError, publish
from onboard.pipeline.slot import HeadMovedError
from onboard.pipeline.train import train_stage
from onboard.pipeline.tune import tune_stage
from onboard.registry.services import Services

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
    attempt = check_stage(job, services, progress)
    probed = attempt.stage(Stage.PROBE, ProbeOutput.from_json, lambda: probe_stage(attempt))
    attempt.bench = attempt.bench.without_witnesses(probed.known)
    trained = attempt.stage(Stage.TRAIN, TrainOutput.from_json, lambda: train_stage(attempt, probed), probed)
    alone = Judged(attempt.bench, job.spec, probed, trained, progress)
    tuned = guarded = None
    if job.spec.tune_hypernetwork != "never":
        tune = partial(tune_stage, attempt, probed, trained, alone)
        tuned = attempt.stage(Stage.TUNE, tune_output, tune, probed, trained)
    if isinstance(tuned, ProposedStep):
        guard = partial(guard_stage, attempt, probed, trained, tuned)
        guarded = attempt.stage(Stage.GUARD, GuardOutput.from_json, guard, probed, trained, tuned)
    methods = None
    if job.spec.method == AUTO:
        choose = partial(_choose, attempt, probed, trained, alone, tuned, guarded)
        chosen = attempt.stage(Stage.CHOOSE, ChooseOutput.from_json, choose, probed, trained, tuned, guarded)
        methods = chosen.methods
        if chosen.trained is not None:
            attempt, trained, tuned, guarded = under_first_head(attempt), chosen.trained, None, None
            probed = own_start(attempt, trained.method)
            alone = Judged(attempt.bench, job.spec, probed, trained, progress)
    _publish(attempt, probed, trained, alone, tuned, guarded, methods)


def _choose(
    attempt: Run,
    probed: ProbeOutput,
    trained: TrainOutput,
    alone: Judged,
    tuned: TuneOutput | None,
    guarded: GuardOutput | None,
) -> ChooseOutput:
    outcome = outcome_of(attempt, trained, tuned, guarded)
    judged = alone if outcome.tuned is None else _judged(attempt, probed, outcome)
    return choose_stage(attempt, probed, judged, outcome)


def _publish(
    attempt: Run,
    probed: ProbeOutput,
    trained: TrainOutput,
    alone: Judged,
    tuned: TuneOutput | None,
    guarded: GuardOutput | None,
    methods: MethodsJson | None,
) -> None:
    """Judge what the job has come to, and publish it; what was published while the guard ran is guarded before."""
    outcome, evaluated = replace(outcome_of(attempt, trained, tuned, guarded), methods=methods), None
    while True:
        judged = alone if outcome.tuned is None else _judged(attempt, probed, outcome)
        if evaluated is None:
            before = alone if outcome.tuned else None
            work = partial(judge, judged, attempt.services, outcome.also_chosen, before)
            evaluated = attempt.stage(Stage.EVALUATE, EvaluateOutput.from_json, work, probed, trained, tuned, guarded)
        attempt.progress.stage_started(Stage.PUBLISH)
        attempt.checkpoint()
        try:
            publish(attempt, probed, outcome, judged, evaluated)
        except NewcomersError as met:
            assert guarded is not None
            guarded = guard_newcomers(attempt, outcome, guarded, met.versions)
            outcome = replace(outcome_of(attempt, trained, tuned, guarded), methods=methods)
            evaluated = evaluated if outcome.tuned else None
        else:
            return


def _judged(attempt: Run, probed: ProbeOutput, outcome: Outcome) -> Judged:
    return Judged(outcome.bench, attempt.job.spec, probed, outcome.trained, attempt.progress, outcome.no_estimate)
