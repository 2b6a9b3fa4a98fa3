"""One tuning job at a time per base: the next one waits in its queue, and loses no attempt by that."""

from __future__ import annotations

import pytest
from support.real_jobs import Desk, HookedProgress, opinions
from support.refusals import refused
from support.tuned_jobs import record_of

from onboard.bases import Base
from onboard.domain.job import Job, JobState
from onboard.domain.progress import Progress
from onboard.pipeline import run as pipeline
from onboard.pipeline import tune as tuned
from onboard.pipeline.slot import take_slot
from onboard.registry.events import EventRepository
from onboard.registry.jobs import JobRepository
from onboard.registry.services import Services
from onboard.train.worth_tuning import Worth
from workers.shell import work

pytestmark = pytest.mark.usefixtures("gently")


def test_a_job_that_finds_the_slot_taken_goes_back_to_its_queue_and_runs_later(
    desk: Desk, tiny_services: Services, tiny_base: Base
) -> None:
    first = desk.submit(opinions(24), "first", init="sst2", tune_hypernetwork="always")
    second = desk.submit(opinions(30), "second", init="sst2", tune_hypernetwork="always")
    met: list[Job] = []

    def run(job: Job, services: Services, progress: Progress) -> None:
        def meanwhile(what: str, name: str) -> None:
            if (what, name) == ("started", "tune"):
                met.append(work(tiny_services, "w2", ["default"], pipeline.run) or pytest.fail("nothing to claim"))

        pipeline.run(job, services, HookedProgress(meanwhile))

    done = work(tiny_services, "w1", ["default"], run)
    assert done is not None
    assert (done.id, done.state) == (first.id, JobState.SUCCEEDED)
    (waiting,) = met
    assert (waiting.id, waiting.state, waiting.counted_attempt) == (second.id, JobState.QUEUED, 1)
    assert waiting.not_before_at > waiting.created_at
    with tiny_services.database.read() as session:
        reasons = [event.numbers.get("reason", "") for event in EventRepository(session).list(second.id)]
        stages = [event.stage for event in EventRepository(session).list(second.id) if event.kind == "stage_finished"]
    assert any(first.id in reason for reason in reasons)
    assert stages == []  # nothing was computed in vain
    desk.let_be_due(second.id)
    after = work(tiny_services, "w2", ["default"], pipeline.run)
    assert after is not None
    assert (after.state, (after.result or {})["hypernetwork_version"]) == (JobState.SUCCEEDED, 3)
    assert record_of(tiny_services, tiny_base).head == 3


def test_jobs_that_tune_nothing_wait_for_nobody(
    desk: Desk, tiny_services: Services, tiny_base: Base, monkeypatch: pytest.MonkeyPatch
) -> None:
    take_slot(tiny_services, "another", record_of(tiny_services, tiny_base))
    assert desk.learn(opinions(24), "plain", init="sst2")["version"] == 1
    monkeypatch.setattr(tuned, "worth_tuning", lambda _: Worth(False, "It does not pay."))
    assert desk.learn(opinions(24), "unworthy", init="sst2", tune_hypernetwork="auto")["version"] == 1


def test_auto_waits_only_once_it_is_known_that_it_tunes_and_goes_on_from_there(
    desk: Desk, tiny_services: Services, tiny_base: Base, monkeypatch: pytest.MonkeyPatch
) -> None:
    from onboard.registry.leases import LeaseRepository

    monkeypatch.setattr(tuned, "worth_tuning", lambda _: Worth(True, "It pays."))
    base = record_of(tiny_services, tiny_base)
    take_slot(tiny_services, "another", base)
    desk.submit(opinions(24), init="sst2", tune_hypernetwork="auto")
    with refused("tuning-slot-taken"):
        desk.run(desk.claim())
    with tiny_services.database.write() as session:
        LeaseRepository(session).give_back_all("another")
    desk.lose()
    progress = HookedProgress(lambda *_: None)
    assert desk.run(desk.claim(), progress).state is JobState.SUCCEEDED
    assert progress.stages[:2] == ["check", "tune"]


def test_a_job_that_is_cancelled_or_fails_frees_the_slot(desk: Desk, tiny_services: Services, tiny_base: Base) -> None:
    for number in range(2):
        desk.submit(opinions(24), f"task-{number}", init="sst2", tune_hypernetwork="always")
    with tiny_services.database.read() as session:
        first = JobRepository(session).list()[-1]

    def fail(job: Job, services: Services, progress: Progress) -> None:
        take_slot(services, job.id, record_of(tiny_services, tiny_base))
        raise ValueError("a bug")

    done = work(tiny_services, "w1", ["default"], fail)
    assert done is not None
    assert (done.id, done.state) == (first.id, JobState.FAILED)
    after = work(tiny_services, "w1", ["default"], pipeline.run)
    assert after is not None
    assert after.state is JobState.SUCCEEDED
