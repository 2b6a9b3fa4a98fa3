"""Deleting and unlearning in either database: rows of every table, and which of them stay."""

from __future__ import annotations

from dataclasses import replace

import pytest
from sqlalchemy import update
from support.old_and_needless import count, ended_job
from support.refusals import refused
from support.registry_samples import ARTIFACT, BASE, sample_spec, sample_task, sample_version

from onboard.domain.job import JobState
from onboard.domain.task import HypernetworkVersion, SnapshotRecord
from onboard.errors import NotFoundError
from onboard.registry.aliases import AliasRepository
from onboard.registry.bases import BaseRepository
from onboard.registry.claims import ClaimRepository
from onboard.registry.events import EventRepository
from onboard.registry.jobs import JobRepository
from onboard.registry.outbox import OutboxRepository
from onboard.registry.services import Services
from onboard.registry.snapshots import SnapshotRepository
from onboard.registry.tables import SnapshotRow, StageOutputRow, TaskRow
from onboard.registry.unlearning import UnlearningRepository
from onboard.registry.versions import VersionRepository
from onboard.registry.webhook_tables import WebhookEventRow
from onboard.storage.artifacts import digest_of
from onboard.versions.delete import delete_task

ROWS = digest_of(b"rows")  # of every sample


def snapshot(service: Services, digest: str = ROWS) -> None:
    """The samples' dataset, as a submission stores it."""
    artifacts = [service.store(f"{digest} {part}".encode(), "snapshot") for part in ("rows", "hashes")]
    with service.database.write() as session:
        record = SnapshotRecord(digest, artifacts[0], artifacts[1], "classification", ("blue", "red"), {"train": 2})
        SnapshotRepository(session).add(record)


def test_a_published_a_failed_and_a_waiting_job_leave_no_request_and_no_output(service: Services) -> None:
    snapshot(service)
    jobs = [ended_job(service, state, 0.0, base_digest=BASE) for state in (JobState.SUCCEEDED, JobState.FAILED)]
    with service.database.write() as session:
        jobs.append(JobRepository(session).add(sample_spec(), key="once")[0])
        published = VersionRepository(session).resolve("colours@v1")
    done = delete_task(service, "colours").to_document().to_json()
    assert done["removed"].pop("bytes") > 0
    assert done["removed"] == {"versions": 1, "jobs": 3, "datasets": 1, "artifacts": 4}
    assert count(service, SnapshotRow) == count(service, StageOutputRow) == 0
    with service.database.read() as session:
        states = [JobRepository(session).get(job.id) for job in jobs]
        events = [event.kind for event in EventRepository(session).list(jobs[0].id)]
    assert [job.state for job in states] == [JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED]
    assert {(job.spec.dataset, job.key, job.result) for job in states} == {("", None, None)}
    assert states[0].spec.options == {"base_digest": BASE, "embedded_at": published.created_at}
    assert set(events) == {"state"}


def test_a_dataset_that_another_task_names_stays_and_the_task_is_named(service: Services) -> None:
    snapshot(service)
    for task in ("colours", "shapes"):
        ended_job(service, JobState.SUCCEEDED, 0.0, task)
    done = delete_task(service, "colours")
    assert (done.removed.datasets, done.removed.shared_with) == (0, ("shapes",))
    assert count(service, SnapshotRow) == 1
    assert delete_task(service, "shapes").removed.datasets == 1


def test_webhooks_tell_of_the_deletion_and_of_nothing_before_it(service: Services) -> None:
    ended_job(service, JobState.SUCCEEDED, 0.0)
    ended_job(service, JobState.SUCCEEDED, 0.0, "shapes")
    assert count(service, WebhookEventRow) == 4
    delete_task(service, "colours")
    with service.database.write() as session:
        OutboxRepository(session).address(["a"], 60.0)
        events = {(event.type, event.data["task"]) for event in OutboxRepository(session).due("a")}
    assert events == {("task.deleted", "colours"), ("version.published", "shapes"), ("alias.moved", "shapes")}


def test_a_task_that_an_earlier_release_only_hid_is_deleted_now(service: Services) -> None:
    ended_job(service, JobState.SUCCEEDED, 0.0)
    with service.database.write() as session:
        session.execute(update(TaskRow).values(deleted_at=1.0))
    assert delete_task(service, "colours").removed.versions == 1
    with pytest.raises(NotFoundError):
        delete_task(service, "colours")


def test_a_rebuilt_version_takes_the_aliases_and_the_marked_hypernetwork_goes_with_the_last_that_needs_it(
    service: Services,
) -> None:
    tuned = HypernetworkVersion(base_digest=BASE, version=0, artifact=ARTIFACT, digest=ARTIFACT)
    rebuilt = sample_version("shapes")
    with service.database.write() as session:
        BaseRepository(session).advance(tuned, expected_head=1)
        versions = VersionRepository(session)
        for name in ("shapes", "forms"):
            versions.add(replace(rebuilt, task=name, hypernetwork_version=2), sample_task(name))
        UnlearningRepository(session).mark("colours", ["shapes@v1", "forms@v1"], [(BASE, 2)])
        assert UnlearningRepository(session).unmarked(BASE) == {1}
        with refused("hypernetwork-not-usable"):
            versions.add(replace(rebuilt, hypernetwork_version=2), sample_task("shapes"))
        with refused("version-being-rebuilt"):
            versions.add(replace(rebuilt, parent="forms@v1"), sample_task("shapes"))
        job, _ = JobRepository(session).add(sample_spec("shapes", replaces=["shapes@v1", "forms@v1"]))
        assert ClaimRepository(session).claim("w1", ["default"]) is not None
        draft = replace(rebuilt, kind="onboarded", job=job.id)
        versions.publish(draft, sample_task("shapes"), attempt=1, result={}, move_latest=False, present=1)
        assert AliasRepository(session).list("shapes") == {"latest": 2}
        assert [version.version for version in versions.list(task="shapes")] == [2]
        assert BaseRepository(session).hypernetwork(BASE, 2).collected_at is None  # forms stands under it
        UnlearningRepository(session).remove(["forms@v1"])
        line = BaseRepository(session).hypernetworks(BASE)
        assert [(head.version, head.artifact is None) for head in line] == [(1, False), (2, True)]
        result = JobRepository(session).get(job.id).result
    assert result is not None
    assert result["latest"] == {"alias": "latest", "moved": True, "reason": "rebuilt without a deleted task"}


def test_an_ordinary_job_replaces_nothing_even_if_it_says_so(service: Services) -> None:
    with service.database.write() as session:
        VersionRepository(session).add(sample_version("shapes"), sample_task("shapes"))
        job, _ = JobRepository(session).add(sample_spec("shapes", replaces=["shapes@v1"]))
        assert ClaimRepository(session).claim("w1", ["default"]) is not None
        draft = sample_version("shapes", job=job.id)
        VersionRepository(session).publish(draft, sample_task("shapes"), attempt=1, result={}, move_latest=False)
        assert AliasRepository(session).list("shapes") == {"latest": 1}
        assert len(VersionRepository(session).list(task="shapes")) == 2
