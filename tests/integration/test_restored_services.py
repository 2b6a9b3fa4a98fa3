"""A backup restored into an empty service: the same bytes, answers and numbers, whatever the database and storage."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import create_engine, text
from support.lively_service import Empty, quiet, require_same, restored_into, rows_of, rows_of_home, that_stay
from support.published import add_version, embedding_of
from support.real_jobs import Desk, HookedProgress, opinions
from support.refusals import refused
from support.registry_samples import sample_spec

from onboard.bases import Base
from onboard.domain.job import JobState
from onboard.domain.worker import WorkerState
from onboard.errors import FencedError
from onboard.hypernetworks.register import register_base
from onboard.operations.access import create_token, identify, list_tokens, revoke_token
from onboard.operations.backup.make import back_up
from onboard.operations.backup.restore import restore
from onboard.registry.aliases import AliasRepository
from onboard.registry.audit import entries
from onboard.registry.claims import ClaimRepository
from onboard.registry.events import EventRepository
from onboard.registry.jobs import JobRepository
from onboard.registry.leases import LeaseRepository
from onboard.registry.load import GoingOn
from onboard.registry.outbox import OutboxRepository
from onboard.registry.services import Services, open_services
from onboard.registry.snapshots import StageOutputRepository
from onboard.registry.workers import QueueRepository, WorkerRepository
from onboard.settings import Settings
from onboard.storage.artifacts import digest_of
from onboard.testing import RecordedProgress


def test_a_restored_home_fetches_and_predicts_as_before_and_goes_on_counting(
    lively: Services, empty_home: Empty, tiny_base: Base, tmp_path: Path
) -> None:
    manifest, copied = back_up(lively, str(tmp_path / "backup"), quiet)
    assert copied.copied == manifest.artifacts["count"]
    restored = restored_into(empty_home, tmp_path / "backup")
    assert restored.artifacts.copied == manifest.artifacts["count"]
    assert [(base["name"], base["folder"], base["versions"]) for base in restored.bases] == [
        (tiny_base.name, str(tiny_base.folder), 4)
    ]
    after = empty_home.opened()
    require_same(lively, after, tmp_path)
    assert not after.artifacts.has(digest_of(b"of nobody"))  # what nothing needs is not copied
    register_base(after, tiny_base)
    assert add_version(after, tiny_base, "mood", (1, 2), ("good", "bad"), z=embedding_of(4)).version == 4
    with after.database.write() as session:
        assert WorkerRepository(session).list(include_stopped=True) == []
        assert LeaseRepository(session).holder("reconciler") is None
        assert "gpu" in QueueRepository(session).paused()
        waiting, new = JobRepository(session).add(sample_spec("waiting"), key="once")
        assert (waiting.spec.task, new) == ("waiting", False)
        AliasRepository(session).rollback("mood", "latest")  # its history is there
    after.close()


def test_running_jobs_are_queued_again_and_keep_what_their_stages_left(
    lively: Services, empty_home: Empty, tmp_path: Path
) -> None:
    with lively.database.read() as session:
        before = {job.spec.task: job for job in JobRepository(session).list()}
    assert before["running"].state is JobState.RUNNING
    back_up(lively, str(tmp_path / "backup"), quiet)
    restored = restored_into(empty_home, tmp_path / "backup")
    assert restored.loaded.unfinished.requeued == (before["running"].id,)
    assert restored.loaded.unfinished.cancelled == (before["unwanted"].id,)
    after = empty_home.opened()
    with after.database.write() as session:
        jobs = {job.spec.task: job for job in JobRepository(session).list()}
        assert {task: job.state.value for task, job in jobs.items()} == {
            "waiting": "queued", "ended": "cancelled", "running": "queued", "unwanted": "cancelled",
        }  # fmt: skip
        assert jobs["unwanted"].error is not None
        assert jobs["unwanted"].error["code"] == "cancelled"
        assert jobs["running"].max_attempts == before["running"].max_attempts + 1
        last = EventRepository(session).list(before["running"].id)[-1]
        assert "backup" in last.numbers["reason"]
        again = ClaimRepository(session).claim("w2", ["default"])
        assert again is not None
        assert (again.id, again.attempt) == (before["running"].id, 2)
        assert again.spec.options["note"] == "ümlaut \u2028 \U0001f600"
        output = StageOutputRepository(session).get("key")
    assert output is not None
    assert after.artifacts.get(output) == b'{"z": [1.0]}'
    after.close()


def test_a_job_that_was_in_the_middle_goes_on_after_its_last_finished_stage(
    desk: Desk, empty_home: Empty, tmp_path: Path
) -> None:
    desk.submit(opinions(20))
    job = desk.claim()

    def stop(what: str, name: str) -> None:
        if (what, name) == ("finished", "train"):
            raise FencedError("The process was killed.")

    with pytest.raises(FencedError):
        desk.run(job, HookedProgress(stop))
    back_up(desk.services, str(tmp_path / "backup"), quiet)
    assert restored_into(empty_home, tmp_path / "backup").loaded.unfinished.requeued == (job.id,)
    after = empty_home.opened()
    elsewhere, progress = Desk(after, tmp_path), RecordedProgress()
    ended = elsewhere.run(elsewhere.claim(), progress)
    assert (ended.id, ended.state) == (job.id, JobState.SUCCEEDED)
    assert progress.stages == ["check", "evaluate"]
    assert elsewhere.version("mood").version == 1
    after.close()


@pytest.mark.services
def test_a_home_grows_up_to_a_server_and_comes_back(
    lively: Services, empty_home: Empty, empty_server: Empty, tiny_base: Base, tmp_path: Path
) -> None:
    back_up(lively, str(tmp_path / "small"), quiet)
    restored_into(empty_server, tmp_path / "small")
    server = empty_server.opened()
    require_same(lively, server, tmp_path / "1")
    with server.database.write() as session:
        numbers = [event.id for job in JobRepository(session).list() for event in EventRepository(session).list(job.id)]
        added, _ = JobRepository(session).add(sample_spec("later"))
        assert EventRepository(session).list(added.id)[0].id > max(numbers)  # the server's own counter goes on
        assert session.scalar(text("SELECT count(*) FROM jobs WHERE result IS NULL")) == 5  # and not JSON's null
    register_base(server, tiny_base)
    add_version(server, tiny_base, "mood", (1, 2), ("good", "bad"), z=embedding_of(4))
    back_up(server, str(tmp_path / "grown.zip"), quiet)
    restored_into(empty_home, tmp_path / "grown.zip", GoingOn(tokens=True, webhooks=True))
    after = empty_home.opened()
    require_same(server, after, tmp_path / "2")
    expected, restored = rows_of(server), rows_of(after)
    assert [row["action"] for row in restored["audit_log"] if row not in expected["audit_log"]] == ["service.restore"]
    assert {**restored, "audit_log": None} == {**expected, "audit_log": None}
    assert add_version(after, tiny_base, "mood", (1, 2), ("good", "bad"), z=embedding_of(5)).version == 5
    server.close()
    after.close()


def test_what_a_service_ships_with_is_no_hindrance(
    lively: Services, empty_home: Empty, tiny_base: Base, tmp_path: Path
) -> None:
    back_up(lively, str(tmp_path / "backup"), quiet)
    fresh = empty_home.opened()
    register_base(fresh, tiny_base)
    fresh.store(b"onboard doctor", "probe")
    with fresh.database.write() as session:
        WorkerRepository(session).enter("w9", WorkerState.RUNNING, queues=["default"], host="here", device="cpu")
    restored = restored_into(empty_home, tmp_path / "backup")
    assert restored.artifacts.present > 0
    assert that_stay(rows_of(fresh)) == that_stay(rows_of(lively))
    with fresh.database.read() as session:
        assert [worker.name for worker in WorkerRepository(session).list()] == ["w9"]
    fresh.close()


@pytest.mark.parametrize("kind", ["home", pytest.param("server", marks=pytest.mark.services)])
def test_tokens_of_a_backup_are_revoked_and_its_webhooks_dropped(
    lively: Services, tmp_path: Path, request: pytest.FixtureRequest, kind: str
) -> None:
    empty: Empty = request.getfixturevalue(f"empty_{kind}")
    _, secret = create_token(lively.database, "revoked_later", ["admin"])
    back_up(lively, str(tmp_path / "backup"), quiet)
    revoke_token(lively.database, "revoked_later")
    loaded = restored_into(empty, tmp_path / "backup").loaded
    assert (loaded.revoked_tokens, loaded.kept_tokens) == (2, 0)
    after = empty.opened()
    assert {token.name for token in list_tokens(after.database, include_ended=True)} == {
        "leaver", "reader", "revoked_later",
    }  # fmt: skip
    assert list_tokens(after.database) == []
    with refused("token-not-valid", state="revoked"):
        identify(after.database, secret)
    undelivered = {row["event"] for row in rows_of(lively)["webhook_deliveries"] if row["state"] == "waiting"}
    undelivered |= {row["id"] for row in rows_of(lively)["webhook_events"] if row["addressed_at"] is None}
    assert loaded.dropped_webhooks == len(undelivered) > 2
    with after.database.read() as session:
        assert not OutboxRepository(session).has_work(["a.example.com/1", "b.example.com/2"], 60.0)
        states = session.scalars(text("SELECT state FROM webhook_deliveries ORDER BY state")).all()
        assert states == ["delivered", "given_up"]
        (restoring,) = (entry for entry in entries(session, 1))
    assert (restoring.action, restoring.facts["revoked_tokens"]) == ("service.restore", 2)
    after.close()


def test_a_service_that_has_tokens_already_is_not_empty(lively: Services, empty_home: Empty, tmp_path: Path) -> None:
    back_up(lively, str(tmp_path / "backup"), quiet)
    present = empty_home.opened()
    _, secret = create_token(present.database, "mine", ["admin"])
    with refused("service-not-empty"):
        restored_into(empty_home, tmp_path / "backup")
    assert identify(present.database, secret).name == "mine"
    present.close()


def test_tokens_and_webhooks_go_on_where_that_is_asked_for(lively: Services, empty_home: Empty, tmp_path: Path) -> None:
    back_up(lively, str(tmp_path / "backup"), quiet)
    loaded = restored_into(empty_home, tmp_path / "backup", GoingOn(tokens=True, webhooks=True)).loaded
    assert (loaded.revoked_tokens, loaded.kept_tokens, loaded.dropped_webhooks) == (0, 1, 0)
    expected, restored = rows_of(lively), rows_of_home(empty_home)
    for table in ("tokens", "webhook_events", "webhook_deliveries"):
        assert restored[table] == expected[table] != []
    with empty_home.opened().database.read() as session:
        for table in ("sessions", "sign_in_codes"):  # of browsers that the service of the backup had let in
            assert session.scalar(text(f"SELECT count(*) FROM {table}")) == 0


@pytest.mark.services
def test_a_database_of_another_program_is_left_alone(lively: Services, empty_server: Empty, tmp_path: Path) -> None:
    back_up(lively, str(tmp_path / "backup"), quiet)
    engine = create_engine(empty_server.settings.resolved_database_url)
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE jobs (mine text)"))
    with refused("tables-of-other-program"):
        restored_into(empty_server, tmp_path / "backup")
    with engine.begin() as connection:
        assert connection.execute(text("SELECT count(*) FROM jobs")).scalar() == 0
    engine.dispose()


def test_artifacts_and_backups_may_lie_in_object_stores(
    lively: Services, s3_url: str, tmp_path: Path, tiny_base: Base
) -> None:
    target = "s3://onboard/backups/ours"
    first, _ = back_up(lively, target, quiet)
    _, again = back_up(lively, target, quiet)
    assert (again.copied, again.present) == (0, first.artifacts["count"])
    settings = Settings(home=tmp_path / "new", base=str(tiny_base.folder), device="cpu", artifact_url=s3_url)
    restore(settings, target, quiet)
    after = open_services(settings)
    require_same(lively, after, tmp_path)
    _, moved = back_up(after, str(tmp_path / "back"), quiet)
    assert moved.copied == first.artifacts["count"]
    after.close()


def test_numbers_of_deleted_rows_are_not_given_out_again(lively: Services, empty_home: Empty, tmp_path: Path) -> None:
    with lively.database.write() as session:
        added, _ = JobRepository(session).add(sample_spec("gone"))
        (newest,) = [event.id for event in EventRepository(session).list(added.id)]
        session.execute(text("DELETE FROM jobs WHERE id = :id"), {"id": added.id})
    manifest, _ = back_up(lively, str(tmp_path / "backup"), quiet)
    assert manifest.tables["job_events"].last == newest
    restored_into(empty_home, tmp_path / "backup")
    after = empty_home.opened()
    with after.database.write() as session:
        added, _ = JobRepository(session).add(sample_spec("new"))
        assert EventRepository(session).list(added.id)[0].id > newest
    after.close()
