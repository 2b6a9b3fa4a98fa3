"""Run a job: check → [readout] → probe → train → [tune → guard] → [choose] → evaluate → publish.

Only this module knows the order.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from onboard.bases import find_base
from onboard.domain.job import Job, Stage
from onboard.domain.methods import AUTO
from onboard.domain.progress import Progress
from onboard.domain.readout import ProvisionalJson
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
from onboard.pipeline.own_start import own_start, under_first_head
from onboard.pipeline.probe import probe_stage
from onboard.pipeline.provisional import First, compared, confirm, first_version
from onboard.pipeline.publish import publish
from onboard.pipeline.slot import HeadMovedError
from onboard.pipeline.train import train_stage
from onboard.pipeline.tune import tune_stage
from onboard.registry.jobs import JobRepository
from onboard.registry.services import Services

MOST_STARTS = 3  # of an attempt, if its base's head moves while it runs
_FAST: Final = "--fast stops after the first version."
_OVERTAKEN: Final = "Job {job} learns these rows and later changes, so no embedding is learned from these rows."


def preload(services: Services) -> None:
    """Load the default base, so that the first job of a worker starts warm."""
    from onboard.bases.load import load_engine

    load_engine(find_base(services.settings.base), services.device)


@memory_trouble_told("this job")
def run(job: Job, services: Services, progress: Progress) -> None:
    """Run a claimed job until its version is published.

    Raises:
        OnboardError: the job failed; FencedError, CancelledError and SlotTakenError are passed on.
    """
    for _ in range(MOST_STARTS):
        try:
            return _run(job, services, progress)
        except HeadMovedError as moved:
            progress.note(str(moved))
    raise ConflictError("hypernetwork-moved", times=MOST_STARTS, id=job.id)


@dataclass(frozen=True)
class _Learned:
    """Outputs of the stages of one attempt.

    Args:
        first: the provisional version; None without one.
        alone: predictions of the embedding before any tuning.
        methods: methods that were tried, if the job chose among them.
    """

    attempt: Run
    first: First | None
    probed: ProbeOutput
    trained: TrainOutput
    alone: Judged
    tuned: TuneOutput | None = None
    guarded: GuardOutput | None = None
    methods: MethodsJson | None = None

    @property
    def outputs(self) -> tuple[ProbeOutput, TrainOutput, TuneOutput | None, GuardOutput | None]:
        """Outputs of its stages in order; later stages build on them."""
        return self.probed, self.trained, self.tuned, self.guarded

    @property
    def outcome(self) -> Outcome:
        return replace(outcome_of(self.attempt, self.trained, self.tuned, self.guarded), methods=self.methods)

    def judged(self, outcome: Outcome) -> Judged:
        if outcome.tuned is None:
            return self.alone
        job, progress = self.attempt.job, self.attempt.progress
        return Judged(outcome.bench, job.spec, self.probed, outcome.trained, progress, outcome.no_estimate)


def _run(job: Job, services: Services, progress: Progress) -> None:
    """Run the stages under the base's current head. Raises HeadMovedError if they have to be repeated."""
    attempt = check_stage(job, services, progress)
    first = first_version(attempt)
    if first is not None and job.spec.fast:
        facts = ProvisionalJson(version=first.version.version, confirmed=True, reason=_FAST, start=None)
        confirm(first, first.probed, Outcome(first.attempt.bench, first.trained), facts)
        return
    if first is not None and (later := _overtaken(attempt)) is not None:
        reason = _OVERTAKEN.format(job=later.id)
        facts = ProvisionalJson(version=first.version.version, confirmed=True, reason=reason, start=None)
        confirm(first, first.probed, Outcome(first.attempt.bench, first.trained), facts)
        return
    probed = attempt.stage(Stage.PROBE, ProbeOutput.from_json, lambda: probe_stage(attempt))
    attempt.bench = attempt.bench.without_witnesses(probed.known)
    trained = attempt.stage(Stage.TRAIN, TrainOutput.from_json, lambda: train_stage(attempt, probed), probed)
    alone = Judged(attempt.bench, job.spec, probed, trained, progress)
    learned = _Learned(attempt, first, probed, trained, alone)
    if job.spec.tune_hypernetwork != "never":
        tune = partial(tune_stage, attempt, probed, trained, alone)
        learned = replace(learned, tuned=attempt.stage(Stage.TUNE, tune_output, tune, probed, trained))
    if isinstance(tuned := learned.tuned, ProposedStep):
        guard = partial(guard_stage, attempt, probed, trained, tuned)
        guarded = attempt.stage(Stage.GUARD, GuardOutput.from_json, guard, probed, trained, tuned)
        learned = replace(learned, guarded=guarded)
    _publish(_chosen(learned) if job.spec.method == AUTO else learned)


def _overtaken(attempt: Run) -> Job | None:
    """Return a waiting job that corrects this job's labels, if any."""
    with attempt.services.database.read() as session:
        return JobRepository(session).building_on(attempt.job)


def _chosen(learned: _Learned) -> _Learned:
    """Let `--method auto` choose another method, if the job wants that."""
    attempt, probed, outcome = learned.attempt, learned.probed, learned.outcome
    choose = partial(choose_stage, attempt, probed, learned.judged(outcome), outcome)
    chosen = attempt.stage(Stage.CHOOSE, ChooseOutput.from_json, choose, *learned.outputs)
    if chosen.trained is None:
        return replace(learned, methods=chosen.methods)
    own = under_first_head(attempt)
    start = own_start(own, chosen.trained.method)
    alone = Judged(own.bench, own.job.spec, start, chosen.trained, own.progress)
    return _Learned(own, learned.first, start, chosen.trained, alone, methods=chosen.methods)


def _publish(learned: _Learned) -> None:
    """Evaluate the outcome, and publish it or confirm the provisional version.

    Versions that were published while the guard ran are guarded first.
    """
    attempt, first, evaluated = learned.attempt, learned.first, None
    while True:
        outcome = learned.outcome
        judged = learned.judged(outcome)
        if first is not None:
            facts = compared(first, judged, outcome)
            if facts["confirmed"]:
                confirm(first, learned.probed, outcome, facts)
                return
            outcome = replace(outcome, provisional=facts)
        evaluated = evaluated or _evaluated(learned, judged, outcome)
        attempt.progress.stage_started(Stage.PUBLISH)
        attempt.checkpoint()
        unguarded = publish(attempt, learned.probed, outcome, judged, evaluated)
        if not unguarded:
            return
        assert learned.guarded is not None  # only a tuned hypernetwork leaves anything to guard
        learned = replace(learned, guarded=guard_newcomers(attempt, outcome, learned.guarded, unguarded))
        if not learned.outcome.tuned:
            evaluated = None  # it was of the tuned hypernetwork, which is now refused


def _evaluated(learned: _Learned, judged: Judged, outcome: Outcome) -> EvaluateOutput:
    before = learned.alone if outcome.tuned else None
    work = partial(judge, judged, learned.attempt.services, outcome.also_chosen, before)
    return learned.attempt.stage(Stage.EVALUATE, EvaluateOutput.from_json, work, *learned.outputs)
