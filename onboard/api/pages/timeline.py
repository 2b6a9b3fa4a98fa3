"""The history of a job, from its events: the wait and the stages of each attempt, with their times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from onboard.domain.job import BULK, BULK_STAGES, LEARNING_STAGES, JobSpec, JobState, Stage
from onboard.domain.methods import AUTO
from onboard.domain.moment import from_iso

WAIT: Final = "wait"
_ORDER: Final = {name: place for place, name in enumerate((WAIT, *Stage))}
_BEYOND_THE_FIRST: Final = {Stage.PROBE, Stage.TRAIN, Stage.TUNE, Stage.GUARD}
_RUNNING: Final = JobState.RUNNING.value


@dataclass(slots=True)
class TimelineStep:
    """A stage of an attempt, or the wait before it.

    Args:
        state: done, now, stopped (the attempt ended in it) or open (not yet started).
        seconds: its duration; None until it ends, and if an earlier attempt had done it.
        began_at: ISO 8601; None if it has not begun in this attempt.
    """

    name: str
    state: str
    seconds: float | None = None
    began_at: str | None = None


@dataclass(slots=True)
class AttemptSteps:
    """An attempt of a job; number 0 is a job that was never claimed."""

    number: int
    steps: list[TimelineStep] = field(default_factory=list)

    def stop(self) -> None:
        """Mark the current step as stopped."""
        for step in self.steps:
            step.state = "stopped" if step.state == "now" else step.state


def timeline(job: Mapping[str, Any], events: Sequence[Mapping[str, Any]]) -> list[AttemptSteps]:
    """Return the attempts of a job, in order; the last one includes the stages that have not started.

    Args:
        events: its events as documents, from the first on.
    """
    attempts: list[AttemptSteps] = []
    queued_at: str | None = job["created_at"]
    for event in events:
        if event["kind"] == "state" and event["message"] == _RUNNING:
            waited = TimelineStep(WAIT, "done", from_iso(event["at"]) - from_iso(queued_at), queued_at)
            attempts.append(AttemptSteps(event["attempt"], [waited]))
        elif event["kind"] == "state":
            if attempts:
                attempts[-1].stop()
            if event["message"] == JobState.QUEUED:
                queued_at = event["at"]
        elif event["stage"] and attempts:
            _enter(attempts[-1], event)
    if job["state"] == JobState.QUEUED:
        attempts.append(
            AttemptSteps(job["attempt"] + 1 if attempts else 0, [TimelineStep(WAIT, "now", None, queued_at)])
        )
    if attempts and not JobState(job["state"]).finished:
        attempts[-1].steps = sorted(
            [*attempts[-1].steps, *_still_to_come(attempts, _stages_of(job))], key=lambda step: _ORDER[step.name]
        )
    return attempts


def _enter(attempt: AttemptSteps, event: Mapping[str, Any]) -> None:
    if event["kind"] == "stage_started":
        attempt.steps.append(TimelineStep(event["stage"], "now", None, event["at"]))
    elif event["kind"] == "stage_finished":
        for step in attempt.steps:
            if step.name == event["stage"] and step.state == "now":
                step.state, step.seconds = "done", event["seconds"]


def _stages_of(job: Mapping[str, Any]) -> Sequence[Stage]:
    spec = job.get("spec") or {}
    if BULK in (spec.get("options") or {}):
        return BULK_STAGES
    asked = JobSpec.known_part({"task": "", "dataset": "", "method": AUTO, **spec})  # without other information it may
    skipped = set() if asked.method == AUTO else {Stage.CHOOSE}
    skipped |= _BEYOND_THE_FIRST if asked.fast else set() if asked.provisional else {Stage.READOUT}
    return [stage for stage in LEARNING_STAGES if stage not in skipped]


def _still_to_come(attempts: Sequence[AttemptSteps], stages: Sequence[Stage]) -> list[TimelineStep]:
    """Return stages that the last attempt has not entered, without those that an earlier one finished."""
    entered = {step.name for step in attempts[-1].steps}
    done = {step.name for attempt in attempts[:-1] for step in attempt.steps if step.state == "done"}
    last = max(_ORDER[name] for name in entered)
    steps = [TimelineStep(stage, "done" if stage in done else "open") for stage in stages if stage not in entered]
    return [step for step in steps if step.state == "done" or _ORDER[step.name] > last]
