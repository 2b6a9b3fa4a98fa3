"""A running job that is cancelled stops where it is."""

from __future__ import annotations

from typing import Any

import pytest
from support.real_jobs import Desk, HookedProgress, opinions

from onboard.domain.job import Job, JobState, Stage
from onboard.domain.progress import Progress
from onboard.errors import CancelledError
from onboard.pipeline import run as pipeline
from onboard.registry.events import EventRepository
from onboard.registry.jobs import JobRepository
from onboard.registry.services import Services
from workers.shell import work


@pytest.mark.parametrize("last", ["probe", "train"])
def test_a_job_that_is_cancelled_in_the_middle_stops_there_and_publishes_nothing(
    desk: Desk, tiny_services: Services, last: str
) -> None:
    job = desk.submit(opinions(24))

    def run(claimed: Job, services: Services, progress: Progress) -> None:
        pipeline.run(claimed, services, _Cancelling(progress, services, claimed.id, last))

    done = work(tiny_services, "worker", ["default"], run)
    assert done is not None
    assert (done.id, done.state, done.result) == (job.id, JobState.CANCELLED, None)
    assert desk.versions("mood") == []
    with tiny_services.database.read() as session:
        finished = [event.stage for event in EventRepository(session).list(job.id) if event.kind == "stage_finished"]
    assert finished[-1:] == [Stage(last)] if last == "probe" else [Stage.PROBE]
    with tiny_services.database.write() as session:
        JobRepository(session).retry(job.id)
    again = work(tiny_services, "worker", ["default"], pipeline.run)
    assert again is not None
    assert again.state is JobState.SUCCEEDED


class _Cancelling:
    """A progress that asks for cancelling once the probe has ended, or in the middle of the training."""

    def __init__(self, progress: Progress, services: Services, job: str, last: str) -> None:
        self._progress, self._services, self._job, self._last = progress, services, job, last

    def __getattr__(self, name: str) -> Any:
        return getattr(self._progress, name)

    def stage_finished(self, stage: Stage, seconds: float, numbers: dict[str, Any]) -> None:
        self._progress.stage_finished(stage, seconds, numbers)
        if stage.value == self._last == "probe":
            self._ask()

    def note(self, message: str, **numbers: Any) -> None:
        self._ask()
        self._progress.note(message, **numbers)

    def stage_started(self, stage: Stage) -> None:
        self._progress.stage_started(stage)
        if stage.value == self._last == "train":
            self._ask()
            self._progress.note("a step")  # what is told hears of it

    def _ask(self) -> None:
        with self._services.database.write() as session:
            JobRepository(session).cancel(self._job)


def test_a_step_of_the_training_hears_of_the_cancelling(desk: Desk) -> None:
    desk.submit(opinions(24))
    started: list[str] = []
    progress = HookedProgress(lambda what, name: None)

    def cancel(what: str, name: str) -> None:
        started.append(name)
        if (what, name) == ("started", "train"):
            progress.cancelled = True

    progress._hook = cancel
    with pytest.raises(CancelledError):
        desk.run(desk.claim(), progress)
    assert started[-1] == "train"
