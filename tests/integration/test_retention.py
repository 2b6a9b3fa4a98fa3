"""What is kept for how long: rows of jobs that ended, their logs, what their stages left, their datasets."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor, wait

import pytest
from sqlalchemy import select, update
from support.old_and_needless import DAY, count, counts, digests, ended_job, store, with_retention
from support.real_services import wait_until
from support.real_workers import Deployment
from support.registry_samples import BLOCKED_SECONDS, sample_spec

from onboard.domain.job import JobState
from onboard.domain.task import SnapshotRecord
from onboard.operations.access import create_token, list_tokens, sign_in
from onboard.operations.gc import collect_garbage
from onboard.operations.retention import retain
from onboard.registry.access_tables import AuditRow, SessionRow, TokenRow
from onboard.registry.audit import entries, record
from onboard.registry.database import Database
from onboard.registry.events import EventRepository
from onboard.registry.jobs import JobRepository
from onboard.registry.outbox import OutboxRepository
from onboard.registry.retention import RetentionRepository
from onboard.registry.services import Services
from onboard.registry.snapshots import SnapshotRepository
from onboard.registry.tables import JobEventRow, JobRow, StageOutputRow
from onboard.registry.transitions import TransitionRepository
from onboard.registry.versions import VersionRepository
from onboard.registry.webhook_tables import WebhookDeliveryRow, WebhookEventRow

OF_THE_DOOR = {"webhook_events": 0, "drift_days": 0, "sessions": 0}
GIVEN_UP = {"hypernetworks": 0}


def test_a_dataset_that_is_submitted_again_at_that_moment_stays(service: Services) -> None:
    artifact = store(service, b"rows")
    record = SnapshotRecord(sample_spec().dataset, artifact, artifact, "classification", ("a", "b"), {"train": 2})
    with service.database.write() as session:
        SnapshotRepository(session).add(record)  # as if its job had been deleted long ago
    with ThreadPoolExecutor(1) as pool, service.database.write() as session:
        SnapshotRepository(session).add(record)
        JobRepository(session).add(sample_spec())
        deleting = pool.submit(_delete_snapshots, service.database)
        wait([deleting], BLOCKED_SECONDS)  # PostgreSQL passes over it, SQLite waits for this transaction
    assert deleting.result() == 0
    assert _delete_snapshots(service.database) == 0
    with service.database.read() as session:
        assert SnapshotRepository(session).get(record.digest).artifact == artifact


def test_texts_that_a_job_is_to_look_at_stay_as_long_as_the_job(service: Services) -> None:
    artifact = store(service, b"texts")
    records = [
        SnapshotRecord(digest, artifact, artifact, "classification", (), {"train": 1}) for digest in ("needed", "not")
    ]
    with service.database.write() as session:
        for record in records:
            SnapshotRepository(session).add(record)
        JobRepository(session).add(sample_spec())
        JobRepository(session).add(sample_spec(unlabelled={"digest": "needed"}))
    assert _delete_snapshots(service.database) == 1
    with service.database.read() as session:
        assert SnapshotRepository(session).get("needed").artifact == artifact


def _delete_snapshots(database: Database) -> int:
    with database.write() as session:
        return RetentionRepository(session).snapshots()


def test_stage_outputs_go_a_day_after_success_and_with_the_log_after_failure(service: Services) -> None:
    fresh = ended_job(service, JobState.SUCCEEDED, 0.5, "fresh")
    ended_job(service, JobState.SUCCEEDED, 1.5, "done")
    failed = ended_job(service, JobState.FAILED, 30, "failed")
    ended_job(service, JobState.DEAD, 100, "dead")
    dry = collect_garbage(service, dry_run=True)
    done = collect_garbage(service)
    assert dry.rows == done.rows == {"job_events": 1, "stage_outputs": 2, **OF_THE_DOOR, **GIVEN_UP, "snapshots": 0}
    assert dry.freed == done.freed
    assert done.freed.count == 2
    with service.database.read() as session:
        jobs_with_outputs = set(session.scalars(select(StageOutputRow.job)))
    assert jobs_with_outputs == {fresh.id, failed.id}
    assert count(service, JobRow) == 4
    digests(service)


def test_by_default_every_job_stays_and_no_version_ever_goes(service: Services) -> None:
    for state in (JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED, JobState.DEAD):
        ended_job(service, state, 5000, state.value)
    collect_garbage(service)
    assert count(service, JobRow) == 4
    collect_garbage(with_retention(service, job=30))
    with service.database.read() as session:
        (job,) = JobRepository(session).list()
        assert job.state is JobState.SUCCEEDED
        assert VersionRepository(session).of_job(job.id) is not None
        assert job.result is not None
        kinds = [event.kind for event in EventRepository(session).list(job.id)]
        assert kinds == ["state", "state", "stage_finished", "state"]  # all but the notes of its progress


def test_workers_apply_the_settings_by_themselves_and_leave_versions_and_bytes(embedded: Deployment) -> None:
    service = embedded.services
    jobs = [ended_job(service, state, 100, state.value) for state in (JobState.SUCCEEDED, JobState.FAILED)]
    stored = service.artifacts.shards()
    embedded.start_worker()
    wait_until(lambda: count(service, StageOutputRow) == 0, what="the retention")
    with service.database.read() as session:
        assert {job.id for job in JobRepository(session).list()} == {job.id for job in jobs}
        assert VersionRepository(session).of_job(jobs[0].id) is not None
        kinds = {event.kind for job in jobs for event in EventRepository(session).list(job.id)}
    assert kinds == {"state", "stage_finished"}
    assert service.artifacts.shards() == stored  # bytes go with `onboard gc`


def test_a_round_of_a_worker_deletes_a_batch_and_says_so(service: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onboard.registry.retention.BATCH", 2)
    for number in range(3):
        ended_job(service, JobState.FAILED, 100, f"failed-{number}")
    ended_job(service, JobState.SUCCEEDED, 100)
    settings = with_retention(service, job=30, event=60).settings
    assert retain(service.database, settings) == {"jobs": 2, "job_events": 2, "stage_outputs": 2}
    assert retain(service.database, settings) == {"jobs": 1}
    assert retain(service.database, settings) == {}
    assert count(service, JobRow) == 1


def test_retention_is_for_ever_when_it_says_so(service: Services) -> None:
    ended_job(service, JobState.FAILED, 5000)
    before = counts(service)
    collect_garbage(with_retention(service, event=0))
    assert counts(service) == before


def test_an_old_job_goes_with_its_log_its_outputs_and_its_dataset_but_not_from_the_figures(service: Services) -> None:
    artifact = store(service, b"rows", hours_ago=5000)
    record = SnapshotRecord(sample_spec().dataset, artifact, artifact, "classification", ("a", "b"), {"train": 2})
    with service.database.write() as session:
        SnapshotRepository(session).add(record)
    ended_job(service, JobState.FAILED, 31)
    with service.database.write() as session:
        moved = JobEventRow.at - 31 * DAY
        session.execute(update(JobEventRow).values(at=moved))
    with service.database.read() as session:
        figures = TransitionRepository(session).list()
    assert collect_garbage(with_retention(service, job=32)).rows["jobs"] == 0
    done = collect_garbage(with_retention(service, job=30))
    assert done.rows == {"jobs": 1, "job_events": 0, "stage_outputs": 0, **OF_THE_DOOR, **GIVEN_UP, "snapshots": 1}
    assert counts(service) == [1, 0, 0, 0, 0]
    assert not service.artifacts.has(artifact)
    with service.database.read() as session:
        assert sorted(map(str, TransitionRepository(session).list())) == sorted(map(str, figures))


def test_a_job_that_is_retried_keeps_what_it_needs(service: Services) -> None:
    job = ended_job(service, JobState.DEAD, 1000)
    before = counts(service)
    with service.database.write() as session:
        JobRepository(session).retry(job.id)
    collect_garbage(with_retention(service, job=1, event=1))
    assert counts(service) == [before[0], before[1], before[2] + 1, before[3], before[4]]


def test_sessions_that_are_over_and_webhooks_of_last_week_go_and_tokens_stay(service: Services) -> None:
    _, secret = create_token(service.database, "reader", ["read"])
    for _ in range(2):
        sign_in(service.database, secret)
    with service.database.write() as session:
        first = session.scalars(select(SessionRow.hash).limit(1)).one()
        for number in range(2):
            OutboxRepository(session).add("alias.moved", {"number": number})
        OutboxRepository(session).address(["a.example.com/1"], DAY)
        last_week = select(WebhookEventRow.id).limit(1).scalar_subquery()
        moved = update(WebhookEventRow).where(WebhookEventRow.id == last_week)
        session.execute(moved.values(at=WebhookEventRow.at - 7 * DAY))
        ended = update(SessionRow).where(SessionRow.hash == first)
        session.execute(ended.values(expires_at=SessionRow.expires_at - DAY))
        session.execute(update(TokenRow).values(expires_at=TokenRow.expires_at - 1000 * DAY))
    done = collect_garbage(service)
    assert {table: done.rows[table] for table in OF_THE_DOOR} == {**OF_THE_DOOR, "webhook_events": 1, "sessions": 1}
    assert [count(service, table) for table in (WebhookEventRow, WebhookDeliveryRow, SessionRow)] == [1, 1, 1]
    assert [token.name for token in list_tokens(service.database, include_ended=True)] == ["reader"]


def test_the_audit_log_stays_for_ever_unless_its_days_are_set(
    service: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("onboard.registry.retention.BATCH", 2)
    with service.database.write() as session:
        for number in range(7):
            record(session, "queue.pause", f"q{number}")
        old = AuditRow.subject.in_(["q0", "q1", "q2", "q3", "q4"])
        session.execute(update(AuditRow).where(old).values(at=AuditRow.at - 1000 * DAY))
    collect_garbage(service)
    assert count(service, AuditRow) == 7
    assert retain(service.database, with_retention(service, audit=999).settings) == {"audit_log": 2}
    assert collect_garbage(with_retention(service, audit=999)).rows["audit_log"] == 3
    with service.database.read() as session:
        assert [entry.subject for entry in entries(session, 10)] == ["q6", "q5"]
