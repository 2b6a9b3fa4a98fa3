"""Run a job: check → [readout] → probe → train → [tune → guard] → [choose] → evaluate → publish.

Only this module knows the order.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from onboard.bases import find_base
from onboard.contract.report import MethodChoice
from onboard.domain.job import Job, Stage
from onboard.domain.methods import AUTO
from onboard.domain.progress import Progress
from onboard.errors import ConflictError
from onboard.model.memory import memory_trouble_told
from onboard.pipeline.attempt import Attempt
from onboard.pipeline.check import check_stage
from onboard.pipeline.choose import choose_stage
from onboard.pipeline.evaluate import Judged, judge
from onboard.pipeline.guard import guard_newcomers, guard_stage
from onboard.pipeline.outcome import JobOutcome, outcome_of
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
from onboard.pipeline.provisional import First, compared, confirm, decided, first_version
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

    attempt: Attempt
    first: First | None
    probed: ProbeOutput
    trained: TrainOutput
    alone: Judged
    tuned: TuneOutput | None = None
    guarded: GuardOutput | None = None
    methods: MethodChoice | None = None

    @property
    def outputs(self) -> tuple[ProbeOutput, TrainOutput, TuneOutput | None, GuardOutput | None]:
        """Outputs of its stages in order; later stages build on them."""
        return self.probed, self.trained, self.tuned, self.guarded

    @property
    def outcome(self) -> JobOutcome:
        return replace(outcome_of(self.attempt, self.trained, self.tuned, self.guarded), methods=self.methods)

    def judged(self, outcome: JobOutcome) -> Judged:
        if outcome.tuned is None:
            return self.alone
        job, progress = self.attempt.job, self.attempt.progress
        return Judged(outcome.bench, job.spec, self.probed, outcome.trained, progress, outcome.no_estimate)


def _run(job: Job, services: Services, progress: Progress) -> None:
    """Run the stages under the base's current head. Raises HeadMovedError if they have to be repeated."""
    attempt = check_stage(job, services, progress)
    first = first_version(attempt)
    enough = None if first is None else _enough(attempt)
    if first is not None and enough is not None:
        facts = decided(first, enough, confirmed=True)
        confirm(first, first.probed, JobOutcome(first.attempt.bench, first.trained), facts)
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


def _enough(attempt: Attempt) -> str | None:
    """Return why the job ends with its first version, if it does."""
    if attempt.job.spec.fast:
        return _FAST
    with attempt.services.database.read() as session:
        later = JobRepository(session).building_on(attempt.job)
    return None if later is None else _OVERTAKEN.format(job=later.id)


def _chosen(learned: _Learned) -> _Learned:
    """Let `--method auto` choose another method, if the job wants that."""
    attempt, probed, outcome = learned.attempt, learned.probed, learned.outcome
    choose = partial(choose_stage, attempt, probed, learned.judged(outcome), outcome)
    choice = attempt.stage(Stage.CHOOSE, ChooseOutput.from_json, choose, *learned.outputs)
    if choice.trained is None:
        return replace(learned, methods=choice.methods)
    under_first = under_first_head(attempt)
    start = own_start(under_first, choice.trained.method)
    alone = Judged(under_first.bench, under_first.job.spec, start, choice.trained, under_first.progress)
    return _Learned(under_first, learned.first, start, choice.trained, alone, methods=choice.methods)


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
            if facts.confirmed:
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


def _evaluated(learned: _Learned, judged: Judged, outcome: JobOutcome) -> EvaluateOutput:
    before = learned.alone if outcome.tuned else None
    work = partial(judge, judged, learned.attempt.services, outcome.also_chosen, before)
    return learned.attempt.stage(Stage.EVALUATE, EvaluateOutput.from_json, work, *learned.outputs)
