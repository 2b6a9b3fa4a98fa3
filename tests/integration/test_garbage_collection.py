"""`onboard gc`: what nothing needs goes, what is needed never does, not even when it is used at that very moment."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from s3fs import S3FileSystem
from sqlalchemy import update
from support.old_and_needless import (
    HOUR,
    count,
    counts,
    digests,
    ended_job,
    make_old,
    path_of,
    put_without_row,
    store,
)
from support.real_s3 import S3Server
from support.refusals import refused
from support.registry_samples import BLOCKED_SECONDS, sample_base, sample_spec, sample_task, sample_version

from onboard.domain.job import JobState, Stage
from onboard.domain.task import HypernetworkVersion
from onboard.errors import StorageError
from onboard.operations.gc import Garbage, collect_garbage
from onboard.operations.lock import alone
from onboard.registry.artifacts import ArtifactRepository
from onboard.registry.bases import BaseRepository
from onboard.registry.claims import ClaimRepository
from onboard.registry.database import Database
from onboard.registry.jobs import JobRepository
from onboard.registry.services import Services
from onboard.registry.snapshots import StageOutputRepository
from onboard.registry.tables import ArtifactRow, HypernetworkRow
from onboard.registry.versions import VersionRepository
from onboard.settings import Settings
from onboard.storage.artifacts import ArtifactStore, digest_of


def document_of(garbage: Garbage) -> dict[str, Any]:
    """What `onboard gc --json` prints."""
    return garbage.to_document().to_json()


def test_old_artifacts_that_nothing_needs_go_with_their_bytes(service: Services) -> None:
    needed = digests(service)
    make_old(service, *needed, hours=1000)
    old, young = store(service, b"old"), store(service, b"young", hours_ago=23)
    dry = collect_garbage(service, dry_run=True)
    assert digests(service) == {*needed, old, young}
    done = collect_garbage(service)
    assert document_of(dry) == {**document_of(done), "dry_run": True}
    assert document_of(done)["artifacts"] == {"test": {"count": 1, "bytes": 3}}
    assert document_of(done)["freed"] == {"count": 1, "bytes": 3}
    assert not service.artifacts.has(old)
    assert digests(service) == {*needed, young}
    assert collect_garbage(service, older_than_hours=22).freed.count == 1
    assert digests(service) == needed
    assert done.damaged == []


def test_bytes_that_are_stored_again_while_they_are_deleted_are_there_afterwards(
    service: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    digest = store(service, b"old")
    delete = ArtifactStore.delete
    with ThreadPoolExecutor(1) as pool:

        def delete_while_another_stores(self: ArtifactStore, *gone: str) -> None:
            if digest in gone:
                storing.append(pool.submit(service.store, b"old", "test"))
                done_in_time(storing[0])  # the lock on the row holds it up, else its bytes would be deleted
            delete(self, *gone)

        storing: list[Future[str]] = []
        monkeypatch.setattr(ArtifactStore, "delete", delete_while_another_stores)
        assert collect_garbage(service).freed.count == 1
        assert storing[0].result() == digest
    assert digest in digests(service)


def done_in_time(future: Future[Any]) -> None:
    """Give it time to end by itself; what a lock holds up does not."""
    wait([future], BLOCKED_SECONDS)


@pytest.mark.parametrize("ends", ["committed", "rolled back"])
def test_what_a_running_transaction_begins_to_need_is_not_taken_away(service: Services, ends: str) -> None:
    digest = store(service, b"old")
    with service.database.write() as session:
        job, _ = JobRepository(session).add(sample_spec())
    with ThreadPoolExecutor(1) as pool:
        try:
            with service.database.write() as session:
                StageOutputRepository(session).put("key", job.id, Stage.TRAIN, digest)
                collecting = pool.submit(_collect, service.database)
                done_in_time(collecting)  # PostgreSQL passes over it, SQLite waits for this transaction
                if ends == "rolled back":
                    raise ZeroDivisionError
        except ZeroDivisionError:
            pass
        taken = collecting.result()
    if ends == "committed":
        assert taken == []
        assert digest in digests(service)
    else:
        assert taken or _collect(service.database) == [digest]


def _collect(database: Database) -> list[str]:
    with database.write() as session:
        return [record.digest for record in ArtifactRepository(session).collect(24 * HOUR, 10)]


def test_a_failure_of_the_store_keeps_the_rows_and_the_next_run_goes_on(
    service: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    store(service, b"old")
    before = counts(service)

    def fail(self: ArtifactStore, *gone: str) -> None:
        raise StorageError("The store is away.")

    monkeypatch.setattr(ArtifactStore, "delete", fail)
    with pytest.raises(StorageError):
        collect_garbage(service)
    assert counts(service) == before
    monkeypatch.undo()
    assert collect_garbage(service).freed.count == 1


def test_old_bytes_without_a_row_go_and_young_ones_stay(service: Services) -> None:
    old, young = put_without_row(service, b"lost", 25), put_without_row(service, b"fresh", 1)
    dry = collect_garbage(service, dry_run=True)
    assert service.artifacts.has(old)
    done = collect_garbage(service)
    assert document_of(dry)["artifacts"] == document_of(done)["artifacts"] == {"unknown": {"count": 1, "bytes": 4}}
    assert not service.artifacts.has(old)
    assert service.artifacts.has(young)


def test_the_store_of_another_service_is_left_alone(service: Services) -> None:
    foreign = [put_without_row(service, bytes([number]), 100) for number in range(2)]
    done = collect_garbage(service)
    assert document_of(done)["foreign"] == {"count": 2, "bytes": 2}
    assert done.freed.count == 0
    assert all(service.artifacts.has(digest) for digest in foreign)


def test_needed_bytes_that_are_missing_or_cut_are_named_and_left_as_they_are(service: Services) -> None:
    (needed,) = digests(service)
    path_of(service, needed).unlink()
    unneeded = store(service, b"old")
    path_of(service, unneeded).unlink()
    done = collect_garbage(service)
    assert [(artifact["digest"], artifact["problem"]) for artifact in done.damaged] == [(needed, "missing")]
    assert done.damaged[0]["used_by"] == [f"hypernetwork_versions {sample_base()[0].digest} 1"]
    assert count(service, ArtifactRow) == 1
    path_of(service, needed).write_bytes(b"ten")
    assert [artifact["problem"] for artifact in collect_garbage(service).damaged] == ["3 bytes instead of 7"]
    path_of(service, needed).write_bytes(b"tensors")
    assert collect_garbage(service).damaged == []


def test_bytes_that_are_written_meanwhile_or_become_needless_are_not_missing(
    service: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    (needed,) = digests(service)
    path_of(service, needed).unlink()
    ended_job(service, JobState.SUCCEEDED, 1.5)  # its stage output goes in this run
    service.artifacts.delete(digest_of(b"colours-succeeded-1.5"))
    collect = ArtifactRepository.collect

    def write_first(self: ArtifactRepository, *arguments: Any) -> Any:
        service.artifacts.put(b"tensors", "hypernetwork")
        return collect(self, *arguments)

    monkeypatch.setattr(ArtifactRepository, "collect", write_first)
    assert collect_garbage(service).damaged == []


def test_what_a_killed_writer_left_goes_when_it_is_old(service: Services) -> None:
    folder = path_of(service, digest_of(b"tensors")).parent
    old, young = (folder / f".{'a' * 64}.{letter * 32}" for letter in "bc")
    for path in (old, young):
        path.write_bytes(b"half")
    os.utime(old, (0, 0))
    assert document_of(collect_garbage(service, dry_run=True))["unfinished"] == {"count": 1, "bytes": 4}
    assert old.exists()
    assert collect_garbage(service).freed.count == 1
    assert [path.exists() for path in (old, young)] == [False, True]


def test_only_one_does_maintenance_at_a_time(service: Services) -> None:
    with alone(service.database, "backup"), refused("maintenance-at-work"):
        collect_garbage(service)
    collect_garbage(service)


def test_who_was_silent_for_too_long_stops(service: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onboard.operations.lock.LEASE_SECONDS", -1.0)
    monkeypatch.setattr("onboard.operations.lock._RENEW_SECONDS", 0.0)
    with alone(service.database, "backup") as keep:
        keep()
        monkeypatch.setattr("onboard.operations.lock.LEASE_SECONDS", 60.0)
        with alone(service.database, "gc"), refused("maintenance-at-work"):
            keep()


def test_many_at_work_while_garbage_is_collected_lose_nothing(service: Services) -> None:
    """Jobs store, refer and publish what earlier attempts have left lying for long, and may be swept at any moment."""
    over, names = threading.Event(), [f"{number}".encode() for number in range(15)]
    for name in names:
        store(service, b"output" + name)
        store(service, b"embedding" + name)

    def refer() -> list[str]:
        return [_store_output(service, b"output" + name) for name in names]

    def publish() -> list[str]:
        return [_publish(service, b"embedding" + name) for name in names]

    def revive() -> None:
        while not over.is_set():
            make_old(service, service.store(b"again and again", "test"))

    with ThreadPoolExecutor(4) as pool:
        workers = [pool.submit(refer), pool.submit(publish)]
        reviving = pool.submit(revive)
        try:
            while not all(worker.done() for worker in workers):
                collect_garbage(service, older_than_hours=1)
        finally:
            over.set()
        reviving.result()
        needed = {digest for worker in workers for digest in worker.result()}
    assert len(needed) == 2 * len(names)
    assert needed <= digests(service)
    assert collect_garbage(service).damaged == []


def _store_output(service: Services, data: bytes) -> str:
    digest = service.store(data, "test")
    with service.database.write() as session:
        job, _ = JobRepository(session).add(sample_spec())
        StageOutputRepository(session).put(data.decode(), job.id, Stage.TRAIN, digest)
    return digest


def _publish(service: Services, data: bytes) -> str:
    digest = service.store(data, "embedding")
    with service.database.write() as session:
        JobRepository(session).add(sample_spec(), queue="publishing")
        job = ClaimRepository(session).claim("w1", ["publishing"])
        assert job is not None
        draft = replace(sample_version(job=job.id), artifact=digest)
        VersionRepository(session).publish(draft, sample_task(), attempt=job.attempt, result={})
    return digest


def test_a_version_that_is_published_at_that_very_moment_keeps_its_bytes(
    service: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sweep has chosen the bytes of an earlier attempt when a later one stores and publishes the same."""
    data = b"embedding of two attempts"
    digest = store(service, data)
    delete = ArtifactStore.delete
    publishing: list[Future[str]] = []
    with ThreadPoolExecutor(1) as pool:

        def delete_while_another_publishes(self: ArtifactStore, *gone: str) -> None:
            if digest in gone:
                publishing.append(pool.submit(_publish, service, data))
                done_in_time(publishing[0])
            delete(self, *gone)

        monkeypatch.setattr(ArtifactStore, "delete", delete_while_another_publishes)
        collect_garbage(service)
        assert publishing[0].result() == digest
    assert digest in digests(service)
    assert collect_garbage(service, older_than_hours=-1).damaged == []
    assert digest in digests(service)


@pytest.fixture
def bucket_service(s3_url: str, sqlite_url: str, tmp_path: Path) -> Iterator[Services]:
    database = Database(sqlite_url)
    yield Services(Settings(home=tmp_path), database, ArtifactStore(s3_url), "cpu")
    database.dispose()


def test_an_object_store_is_cleaned_alike(bucket_service: Services) -> None:
    service = bucket_service
    needed = service.store(b"needed", "test")
    with service.database.write() as session:
        job, _ = JobRepository(session).add(sample_spec())
        StageOutputRepository(session).put("key", job.id, Stage.TRAIN, needed)
    old = [store(service, f"old {number}".encode()) for number in range(3)]
    lost = service.artifacts.put(b"lost", "test")
    assert document_of(collect_garbage(service, dry_run=True))["artifacts"] == {"test": {"count": 3, "bytes": 15}}
    assert all(service.artifacts.has(digest) for digest in old)
    assert collect_garbage(service).freed.count == 3
    assert not any(service.artifacts.has(digest) for digest in old)
    assert service.artifacts.has(lost)  # it is young
    everything = collect_garbage(service, older_than_hours=-1)
    assert document_of(everything)["artifacts"] == {"unknown": {"count": 1, "bytes": 4}}
    assert not service.artifacts.has(lost)
    assert digests(service) == {needed}
    service.artifacts.delete(needed)
    assert [artifact["problem"] for artifact in collect_garbage(service).damaged] == ["missing"]


def test_whoever_may_not_delete_is_told_and_the_rows_stay(
    bucket_service: Services, s3_server: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = [store(bucket_service, bytes([number])) for number in range(3)]
    reader = s3_server.make_user(json.dumps({"Version": "2012-10-17", "Statement": [READ]}))
    for name, value in reader.environment.items():
        monkeypatch.setenv(name, value)
    S3FileSystem.clear_instance_cache()
    store_anew = ArtifactStore(bucket_service.artifacts.url)
    service = Services(bucket_service.settings, bucket_service.database, store_anew, "cpu")
    with refused("store-forbidden", failed="3 files cannot be deleted"):
        collect_garbage(service)
    assert count(service, ArtifactRow) == 3
    assert all(service.artifacts.has(digest) for digest in old)


READ = {"Effect": "Allow", "Action": ["s3:GetObject", "s3:ListBucket"], "Resource": "*"}


def test_a_hypernetwork_that_nothing_needs_gives_up_its_bytes_and_one_that_is_pinned_never_does(
    service: Services,
) -> None:
    base = sample_base()[0].digest
    weights = [store(service, f"version {version}".encode(), hours_ago=1000) for version in range(2, 6)]
    for digest in weights:
        with service.database.write() as session:
            bases = BaseRepository(session)
            draft = HypernetworkVersion(base, 0, digest, digest)
            bases.advance(draft, expected_head=bases.get(base).head)
    with service.database.write() as session:
        pinned = replace(sample_version(), hypernetwork_version=3)
        VersionRepository(session).add(pinned, sample_task())
    assert collect_garbage(service).rows["hypernetworks"] == 0  # all of them were the head just now
    with service.database.write() as session:
        session.execute(update(HypernetworkRow).values(retired_at=HypernetworkRow.retired_at - 25 * HOUR))
    dry = collect_garbage(service, dry_run=True)
    assert [service.artifacts.has(digest) for digest in weights] == [True] * 4
    done = collect_garbage(service)
    assert document_of(dry) == {**document_of(done), "dry_run": True}
    assert (done.rows["hypernetworks"], done.freed.count, done.damaged) == (1, 1, [])
    assert [service.artifacts.has(digest) for digest in weights] == [False, True, True, True]
    with service.database.read() as session:
        hypernetwork = BaseRepository(session).hypernetwork(base, 2)
    assert (hypernetwork.artifact, hypernetwork.digest) == (None, weights[0])
    assert hypernetwork.collected_at
    assert collect_garbage(service).rows["hypernetworks"] == 0
    digests(service)
