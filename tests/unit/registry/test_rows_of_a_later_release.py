"""Rows that a later release wrote are read without what this one does not know."""

from __future__ import annotations

from dataclasses import asdict

import pytest
from sqlalchemy import insert, select, update
from support import watched_jobs as past
from support.registry_samples import sample_spec

from onboard.domain import job as jobs
from onboard.domain.access import Scope
from onboard.domain.job import JobSpec, JobState, Stage
from onboard.domain.release import release_number
from onboard.errors import InputError
from onboard.jobs.control import full_document
from onboard.operations.access import create_token, identify, sign_in
from onboard.registry.access_tables import SessionRow, TokenRow
from onboard.registry.claims import ClaimRepository
from onboard.registry.clock import read_clock
from onboard.registry.database import Database
from onboard.registry.events import EventRepository
from onboard.registry.job_figures import JobFigures
from onboard.registry.jobs import JobRepository
from onboard.registry.tables import JobEventRow, JobRow, WorkerRow
from onboard.registry.workers import WorkerRepository


def test_a_job_in_a_stage_that_only_a_later_release_knows_is_shown_without_it(database: Database) -> None:
    past.worker(database, "w1")
    running = past.running(database, "w1", stage=Stage.TRAIN)
    with database.write() as session:
        session.execute(update(JobRow).values(stage="polish", spec={**running.spec.to_json(), "polish": True}))
        event = {"job": running.id, "attempt": 1, "at": 0.0, "message": "polish started", "numbers": {}}
        session.execute(insert(JobEventRow).values(kind="stage_started", stage="polish", **event))
        session.execute(insert(JobEventRow).values(kind="polished", stage=None, **event))
    with database.read() as session:
        job = JobRepository(session).get(running.id)
        *_, started, polished = EventRepository(session).list(running.id)
        figures = JobFigures(session).attempts(read_clock(session))
    assert (job.stage, job.spec) == (None, running.spec)
    assert [(event.kind, event.stage, event.message) for event in (started, polished)] == [
        ("note", None, "polish started")
    ] * 2
    assert [attempt.job.id for attempt in figures] == [running.id]
    assert full_document(database, job)["stage"] is None


def test_a_failed_job_of_such_a_stage_is_listed(database: Database) -> None:
    failed = past.ended(database, ago=5, state=JobState.FAILED)
    with database.write() as session:
        session.execute(update(JobRow).values(stage="polish"))
    with database.read() as session:
        now = read_clock(session)
        (seen,) = JobFigures(session).failed(now)
    assert (seen.job, seen.stage) == (failed, None)


def test_scopes_that_only_a_later_release_knows_permit_nothing(database: Database) -> None:
    _, secret = create_token(database, "reader", ["read"])
    sign_in(database, secret)
    with database.write() as session:
        session.execute(update(TokenRow).values(scopes=["read", "moderate"]))
        assert session.scalars(select(SessionRow.hash)).all()
    assert identify(database, secret).scopes == {Scope.READ}


def test_more_facts_of_a_worker_are_kept(database: Database) -> None:
    past.worker(database, "w1")
    with database.write() as session:
        session.execute(update(WorkerRow).values(facts={"onboard": "99.0.0", "moon": "full"}))
    with database.read() as session:
        (worker,) = WorkerRepository(session).list()
    assert worker.facts["moon"] == "full"


def test_a_job_needs_the_release_that_introduced_what_it_uses(monkeypatch: pytest.MonkeyPatch) -> None:
    since = {"seed": "0.2.0", "glitter": "0.3.0", "method=sparkle": "0.4.0"}
    monkeypatch.setattr(jobs, "SINCE", since)
    plain = sample_spec()
    specs = [plain, *(JobSpec(**{**asdict(plain), **more}) for more in (
        {"seed": 1}, {"options": {"glitter": True}}, {"method": "linear"}, {"method": "sparkle"},
        {"method": "sparkle", "seed": 1},
    ))]  # fmt: skip
    releases = ["0.1.0", "0.2.0", "0.3.0", "0.1.0", "0.4.0", "0.4.0"]
    assert [spec.needs_release for spec in specs] == [release_number(release) for release in releases]


def test_a_field_that_an_earlier_release_does_not_know_is_stored_if_it_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "SINCE", {"seed": "0.2.0"})
    plain = sample_spec()
    assert plain.to_json().keys() == asdict(plain).keys() - {"seed"}
    assert JobSpec.from_json(plain.to_json()) == plain
    seeded = JobSpec(**{**asdict(plain), "seed": 1})
    assert seeded.to_json() == asdict(seeded)


def test_a_job_that_uses_nothing_new_is_run_by_workers_of_the_first_release(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "SINCE", {"glitter": "0.2.0"})
    first, second = release_number("0.1.0"), release_number("0.2.0")
    with database.write() as session:
        repository = JobRepository(session)
        new, old = (repository.add(sample_spec(**options))[0] for options in ({"glitter": True}, {}))
        assert [job.needs_release for job in (new, old)] == [second, first]
        claimed = [ClaimRepository(session, release=release).claim("w", ["default"]) for release in (first, second)]
    assert [job.id for job in claimed if job is not None] == [old.id, new.id]


def test_unknown_fields_of_a_claimed_job_end_it_because_they_were_requested() -> None:
    with pytest.raises(InputError):
        JobSpec.from_json({**sample_spec().to_json(), "polish": True})
