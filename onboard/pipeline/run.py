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
from onboard.pipeline.guard import given_up, guard_newcomers, guard_stage
from onboard.pipeline.moved_head import HeadMovedError, StepOn, head_now, on_new_head, own_verdict
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
from onboard.pipeline.train import train_stage
from onboard.pipeline.tune import tune_stage
from onboard.registry.jobs import JobRepository
from onboard.registry.services import Services

MOST_STARTS: Final = 3  # of an attempt, if its base's head moves while it runs
MOST_MOVES: Final = 8  # of a tuning step to a newer head, each judged by the guard
_MOVED_ON: Final = (
    "The hypernetwork moved from version {old} to {new} while this job tuned it, and moved again each of the {times} "
    "times that the guard judged the step on a newer version. Only the embedding is published. Submit again to tune it."
)
_CANNOT_MOVE: Final = (
    "The hypernetwork moved from version {old} to {new} while this job tuned it, in each of {times} starts, and the "
    "step cannot be moved there. Only the embedding is published. Submit again to tune it."
)
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
    for start in range(1, MOST_STARTS + 1):
        try:
            return _run(job, services, progress, last=start == MOST_STARTS)
        except HeadMovedError as moved:
            progress.note(str(moved))
    raise ConflictError("hypernetwork-moved", times=MOST_STARTS, id=job.id)


@dataclass(frozen=True)
class _Learned:
    """Outputs of the stages of one attempt.

    Args:
        first: the provisional version; None without one.
        alone: predictions of the embedding before any tuning.
        moved: the tuning step as the guard accepted it, if the head had moved; None for `tuned` as it is.
        methods: methods that were tried, if the job chose among them.
    """

    attempt: Attempt
    first: First | None
    probed: ProbeOutput
    trained: TrainOutput
    alone: Judged
    tuned: TuneOutput | None = None
    moved: StepOn | None = None
    guarded: GuardOutput | None = None
    methods: MethodChoice | None = None

    @property
    def outputs(self) -> tuple[ProbeOutput, TrainOutput, TuneOutput | None, GuardOutput | None]:
        """Outputs of its stages in order; later stages build on them."""
        return self.probed, self.trained, self.tuned if self.moved is None else self.moved.step, self.guarded

    @property
    def under(self) -> Attempt:
        """The attempt under the head that the outcome belongs to: the embedding alone stays under the first one."""
        return self.attempt if self.moved is None else self.moved.attempt

    @property
    def outcome(self) -> JobOutcome:
        _, trained, tuned, guarded = self.outputs
        return replace(outcome_of(self.under, trained, tuned, guarded), methods=self.methods)

    def judged(self, outcome: JobOutcome) -> Judged:
        if outcome.tuned is None:
            return self.alone
        job, progress = self.attempt.job, self.attempt.progress
        return Judged(outcome.bench, job.spec, self.probed, outcome.trained, progress, outcome.no_estimate)

    def without_step(self, guarded: GuardOutput) -> _Learned:
        """Return the outputs with the step refused: only the embedding is left."""
        return replace(self, guarded=guarded, moved=None)


def _run(job: Job, services: Services, progress: Progress, *, last: bool) -> None:
    """Run the stages under the base's current head. Raises HeadMovedError if they have to be repeated.

    In the last start, a tuning whose head moved is given up instead.
    """
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
    if isinstance(learned.tuned, ProposedStep):
        learned = _guarded(learned, last=last)
    _publish(_chosen(learned) if job.spec.method == AUTO else learned, last=last)


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


def _guarded(learned: _Learned, *, last: bool) -> _Learned:
    """Let the guard judge the tuning step on the current head; if the head has moved, the step is moved there first.

    A step that was judged before is tried with the accepted share and smaller ones. If it is refused, the embedding
    alone remains, under the head that it was learned under.

    Args:
        learned: outputs of the stages before.
        last: whether the step is given up if it cannot be moved; otherwise the job starts over.

    Raises:
        HeadMovedError: the job has to start over.
    """
    attempt, tuned = learned.attempt, learned.tuned
    assert isinstance(tuned, ProposedStep)
    began = StepOn(attempt, tuned)
    if (head := head_now(attempt)) == attempt.base.head:
        return replace(learned, moved=None, guarded=_judged_on(began, learned))
    moved = on_new_head(began)
    if moved is not None:
        attempt.progress.note(f"the hypernetwork moved to version {moved.attempt.base.head}: judging the tuning there")
        guarded = _judged_on(moved, learned)
        if not guarded.tuning.kept:
            return learned.without_step(guarded)
        verdict = own_verdict(began, moved, learned.probed, learned.trained, guarded.share)
        if verdict.passed:
            return replace(learned, moved=moved, guarded=guarded)
        attempt.progress.note(f"the task itself would lose by the move: {verdict.reason}")
    if not last:
        raise HeadMovedError(attempt.base.head, head)
    return _given_up(learned, _CANNOT_MOVE.format(old=attempt.base.head, new=head, times=MOST_STARTS))


def _judged_on(on: StepOn, learned: _Learned) -> GuardOutput:
    probed, trained, earlier = learned.probed, learned.trained, learned.guarded
    most = 1.0 if earlier is None else earlier.share
    guard = partial(guard_stage, on.attempt, probed, trained, on.step, most)
    guarded = on.attempt.stage(Stage.GUARD, GuardOutput.from_json, guard, probed, trained, on.step)
    if earlier is None:
        return guarded
    objections = (*earlier.guard.objections, *guarded.guard.objections)
    return replace(guarded, guard=guarded.guard.model_copy(update={"objections": objections}))


def _given_up(learned: _Learned, reason: str) -> _Learned:
    assert isinstance(learned.tuned, ProposedStep)
    learned.attempt.progress.note(reason)
    return learned.without_step(given_up(learned.tuned, reason))


def _publish(learned: _Learned, *, last: bool) -> None:
    """Evaluate the outcome, and publish it or confirm the provisional version.

    Versions that were published while the guard ran are guarded first. If the head moved, the guard judges the tuning
    step again on the new head.
    """
    first, moves, evaluated = learned.first, 0, None
    while True:
        attempt = learned.under
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
        try:
            unguarded = publish(attempt, learned.probed, outcome, judged, evaluated)
        except HeadMovedError as moved:
            if outcome.tuned is None:
                raise
            moves, evaluated = moves + 1, None  # it was of a hypernetwork that does not become the head
            learned = _guarded_again(learned, moved, moves, last=last)
            continue
        if not unguarded:
            return
        assert learned.guarded is not None  # only a tuned hypernetwork leaves anything to guard
        guarded = guard_newcomers(attempt, outcome, learned.guarded, unguarded)
        if guarded.tuning.kept:
            learned = replace(learned, guarded=guarded)
        else:
            learned, evaluated = learned.without_step(guarded), None


def _guarded_again(learned: _Learned, moved: HeadMovedError, moves: int, *, last: bool) -> _Learned:
    """Judge the step on the newest head, or give it up if the head moves faster than the guard judges."""
    if moves <= MOST_MOVES:
        return _guarded(learned, last=last)
    old = learned.attempt.base.head
    return _given_up(learned, _MOVED_ON.format(old=old, new=moved.head, times=MOST_MOVES))


def _evaluated(learned: _Learned, judged: Judged, outcome: JobOutcome) -> EvaluateOutput:
    before = learned.alone if outcome.tuned else None
    work = partial(judge, judged, learned.attempt.services, outcome.also_chosen, before)
    return learned.under.stage(Stage.EVALUATE, EvaluateOutput.from_json, work, *learned.outputs)
