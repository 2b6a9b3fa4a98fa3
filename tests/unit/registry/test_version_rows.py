"""Versions, tasks, bases and artifacts in the registry, on SQLite and on PostgreSQL."""

from __future__ import annotations

from dataclasses import replace

import pytest
from sqlalchemy import text
from sqlalchemy.exc import IntegrityError
from support.refusals import refused
from support.registry_samples import (
    ARTIFACT,
    BASE,
    publish,
    running_job,
    sample_base,
    sample_task,
    sample_version,
)

from onboard.contract.versions import VersionDocument
from onboard.domain.job import JobState, Stage
from onboard.domain.task import EmbeddingVersion, HypernetworkVersion, SnapshotRecord
from onboard.errors import ConflictError, FencedError, NotFoundError
from onboard.registry import versions
from onboard.registry.aliases import AliasRepository
from onboard.registry.artifacts import ArtifactRepository
from onboard.registry.bases import BaseRepository
from onboard.registry.claims import ClaimRepository
from onboard.registry.database import Database
from onboard.registry.deleting import DeletingRepository
from onboard.registry.descent import DescentRepository
from onboard.registry.in_use import InUseRepository
from onboard.registry.jobs import JobRepository
from onboard.registry.snapshots import SnapshotRepository, StageOutputRepository
from onboard.registry.tasks import TaskRepository
from onboard.registry.versions import VersionRepository
from onboard.storage.artifacts import digest_of

pytestmark = pytest.mark.usefixtures("registered_base")


def test_publishing_numbers_the_version_and_ends_the_job_with_its_result(database: Database) -> None:
    first, second = publish(database), publish(database)
    assert (first.version, second.version) == (1, 2)
    assert first.job is not None
    with database.read() as session:
        job = JobRepository(session).get(first.job)
        assert VersionRepository(session).of_job(first.job) == first
        assert VersionRepository(session).resolve("colours@v1") == first
        assert VersionRepository(session).resolve("colours") == second
    assert (job.state, job.result) == (JobState.SUCCEEDED, {"task": "colours", "version": 1})


def test_a_fenced_attempt_publishes_nothing(database: Database) -> None:
    job = running_job(database)
    with database.write() as session:
        ClaimRepository(session).heartbeat(job.id, 1, lease_seconds=-1)
        assert ClaimRepository(session).claim("w2", ["default"]) is not None
    with pytest.raises(FencedError), database.write() as session:
        VersionRepository(session).publish(sample_version(job=job.id), sample_task(), attempt=1, result={})
    with database.read() as session:
        assert VersionRepository(session).list(task="colours") == []
        assert TaskRepository(session).find("colours") is None


def test_the_table_itself_refuses_a_second_version_of_a_job(database: Database) -> None:
    version = publish(database)
    with pytest.raises(IntegrityError), database.write() as session:
        VersionRepository(session).add(sample_version(job=version.job), sample_task())


def test_latest_can_be_left_where_it_is_but_always_names_a_first_version(database: Database) -> None:
    publish(database, move_latest=False)
    publish(database, move_latest=False)
    with database.read() as session:
        assert VersionRepository(session).resolve("colours@latest").version == 1
        assert VersionRepository(session).resolve("colours@v2").version == 2


@pytest.mark.parametrize("reference", ["colours@v9", "colours@production", "shapes", "shapes@v1"])
def test_what_does_not_exist_is_not_found(database: Database, reference: str) -> None:
    publish(database)
    with database.read() as session, pytest.raises(NotFoundError):
        VersionRepository(session).resolve(reference)


def test_another_label_set_is_refused_unless_it_is_wanted(database: Database) -> None:
    publish(database)
    other = sample_task(labels=("blue", "green"))
    with database.write() as session:
        tasks = TaskRepository(session)
        tasks.require_labels("colours", "classification", ["red", "blue"])
        tasks.require_labels("unknown", "classification", ["a"])
        with refused("labels-differ"):
            tasks.require_labels("colours", "classification", ["red", "green"])
        with pytest.raises(ConflictError):
            tasks.put(other)
        assert tasks.put(other, new_labels=True).labels == ("blue", "green")


def test_labels_that_differ_only_in_their_type_are_refused_with_that_reason(database: Database) -> None:
    with database.write() as session:
        tasks = TaskRepository(session)
        tasks.put(replace(sample_task(), labels=("1", "2")))
        with refused("label-types-differ"):
            tasks.require_labels("colours", "classification", [1, 2])
        with refused("labels-differ"):
            tasks.require_labels("colours", "classification", [1, 3])


def test_labels_of_another_type_are_other_labels(database: Database) -> None:
    with database.write() as session:
        tasks = TaskRepository(session)
        tasks.put(replace(sample_task(), labels=(False, True)))
        assert tasks.get("colours").labels == (False, True)
        with pytest.raises(ConflictError):
            tasks.require_labels("colours", "classification", [0, 1])


def forget(database: Database, task: str) -> None:
    with database.write() as session:
        DeletingRepository(session).remove(DescentRepository(session).root(task))


def test_a_deleted_task_is_gone_and_its_numbers_are_not_used_again(database: Database) -> None:
    publish(database), publish(database)
    forget(database, "colours")
    with database.read() as session:
        assert TaskRepository(session).list() == []
        assert VersionRepository(session).list() == []
        with pytest.raises(NotFoundError):
            VersionRepository(session).resolve("colours@v1")
    assert publish(database).version == 3


def test_registering_a_base_again_changes_nothing_but_its_place(database: Database) -> None:
    record, hypernetwork = sample_base()
    source = (sample_task("sst2"), sample_version("sst2"))
    with database.write() as session:
        assert BaseRepository(session).register(replace(record, location="/new"), hypernetwork, [source]) is False
        assert BaseRepository(session).get(BASE).location == "/new"
        assert TaskRepository(session).list() == []


def test_the_shipped_tasks_of_a_second_base_are_further_versions_and_latest_stays(database: Database) -> None:
    for name in (b"one", b"two"):
        digest = digest_of(name)
        with database.write() as session:
            source = (sample_task("sst2"), sample_version("sst2", base=digest))
            assert BaseRepository(session).register(*sample_base(digest), [source])
    with database.read() as session:
        versions = VersionRepository(session)
        assert versions.resolve("sst2").base_digest == digest_of(b"one")
        assert [version.version for version in versions.list(task="sst2")] == [1, 2]
        assert [version.version for version in versions.list(base_digest=digest_of(b"two"))] == [2]
        assert [version.version for version in versions.list(latest_only=True)] == [1]
        assert BaseRepository(session).get("tiny").digest == digest_of(b"two")


def test_the_newest_versions_are_read_page_by_page(database: Database) -> None:
    with database.write() as session:
        for _ in range(5):
            VersionRepository(session).add(sample_version("sst2"), sample_task("sst2"))
        VersionRepository(session).add(sample_version("qqp"), sample_task("qqp"))
    with database.read() as session:
        versions = VersionRepository(session)
        pages = [versions.newest("sst2", 2), versions.newest("sst2", 2, before=4), versions.newest("sst2", 2, before=2)]
    assert [[version.version for version in page] for page in pages] == [[4, 5], [2, 3], [1]]


def test_the_line_of_hypernetworks_has_one_head_that_moves_by_compare_and_swap(database: Database) -> None:
    draft = HypernetworkVersion(base_digest=BASE, version=0, artifact=ARTIFACT, digest=ARTIFACT)
    with database.write() as session:
        bases = BaseRepository(session)
        assert bases.advance(draft, expected_head=1).version == 2
        with refused("hypernetwork-changed"):
            bases.advance(draft, expected_head=1)
        bases.set_head(BASE, 1, expected_head=2)
        assert bases.get(BASE).head == 1
        third = bases.advance(draft, expected_head=1)
        assert (third.version, third.parent) == (3, 1)
        assert [head.version for head in bases.hypernetworks(BASE)] == [1, 2, 3]
        with pytest.raises(NotFoundError):
            bases.set_head(BASE, 9, expected_head=3)


def test_snapshots_and_stage_outputs_are_found_by_their_digests(database: Database) -> None:
    record = SnapshotRecord("sha256:rows", ARTIFACT, ARTIFACT, "classification", ("a", 1, True), {"train": 3})
    job = running_job(database)
    with database.write() as session:
        for _ in range(2):
            SnapshotRepository(session).add(record)
        stored = SnapshotRepository(session).get("sha256:rows")
        assert replace(stored, created_at=0.0) == record
        assert [type(label) for label in stored.labels] == [str, int, bool]
        outputs = StageOutputRepository(session)
        assert outputs.get("key") is None
        outputs.put("key", job.id, Stage.PROBE, ARTIFACT)
        assert outputs.get("key") == ARTIFACT
        with pytest.raises(NotFoundError):
            SnapshotRepository(session).get("sha256:other")


def test_no_version_without_its_artifact_and_its_hypernetwork(database: Database) -> None:
    for draft in (
        replace(sample_version(), artifact=digest_of(b"absent")),
        replace(sample_version(), hypernetwork_version=9),
    ):
        with pytest.raises(IntegrityError), database.write() as session:
            VersionRepository(session).add(draft, sample_task())


def named(database: Database) -> list[tuple[str, str | None]]:
    with database.read() as session:
        versions = VersionRepository(session).startable(BASE)
    return [(f"{version.task}@v{version.version}", version.fingerprint) for version in versions]


def test_a_new_task_can_start_from_the_aliased_versions_of_every_living_task(database: Database) -> None:
    for _ in range(4):
        publish(database)
    publish(database, "shapes")
    publish(database, "gone")
    with database.write() as session:
        AliasRepository(session).move("colours", "production", 2, reason="promoted")
    forget(database, "gone")
    assert named(database) == [("colours@v2", None), ("colours@v4", None), ("shapes@v1", None)]


def test_versions_of_every_hypernetwork_are_startable_and_a_carried_one_stands_for_what_it_was_carried_from(
    database: Database,
) -> None:
    draft = HypernetworkVersion(base_digest=BASE, version=0, artifact=ARTIFACT, digest=ARTIFACT)
    with database.write() as session:
        BaseRepository(session).advance(draft, expected_head=1)
        versions = VersionRepository(session)
        for task in ("colours", "shapes"):
            versions.add(replace(sample_version(task), hypernetwork_version=2), sample_task(task))
            versions.add(replace(sample_version(task), hypernetwork_version=1), sample_task(task))
            AliasRepository(session).move(task, "production", 1, reason="promoted")
        carried = replace(
            sample_version("shapes"), kind="carried", hypernetwork_version=2, learned_under=1, parent="shapes@v2"
        )
        versions.add(carried, sample_task("shapes"))
        AliasRepository(session).move("shapes", "before", 2, reason="promoted")
        BaseRepository(session).set_head(BASE, 1, expected_head=2)
    assert [name for name, _ in named(database)] == ["colours@v1", "colours@v2", "shapes@v3"]


def test_what_has_no_embedding_is_nothing_to_start_from_and_no_head_touches_it(database: Database) -> None:
    with database.write() as session:
        for task, method in (("colours", "compacter"), ("shapes", "hyperformer"), ("moods", "of a later release")):
            VersionRepository(session).add(replace(sample_version(task), method=method), sample_task(task))
        assert [version.task for version in InUseRepository(session).versions(BASE)] == ["shapes"]
    assert [name for name, _ in named(database)] == ["shapes@v1"]


def test_a_version_says_how_many_bytes_its_files_take(database: Database) -> None:
    readout = digest_of(b"readout")
    with database.write() as session:
        ArtifactRepository(session).add(readout, "readout", 35)
        added = VersionRepository(session).add(replace(sample_version(), readout=readout), sample_task())
        assert (added.stored_bytes, VersionRepository(session).resolve("colours").stored_bytes) == (42, 42)
    assert (
        EmbeddingVersion.from_json(
            {**VersionDocument.of(added).to_json(), "created_at": "2026-01-02T00:00:00Z"}
        ).stored_bytes
        == 42
    )


def test_where_no_alias_names_a_version_on_the_base_the_newest_on_it_counts(database: Database) -> None:
    publish(database)
    publish(database)
    other = digest_of(b"another base")
    with database.write() as session:
        BaseRepository(session).register(*sample_base(other), [])
        VersionRepository(session).add(sample_version(base=other), sample_task())
    assert named(database) == [("colours@v2", None)]


def test_a_version_keeps_the_fingerprint_of_its_data_and_what_it_was_mixed_from(database: Database) -> None:
    mixed = {"shapes@v1": 0.25, "mean": 0.75}
    draft = replace(sample_version(), parent="mixture", fingerprint="AACAPw==", mixed_from=mixed)
    with database.write() as session:
        added = VersionRepository(session).add(draft, sample_task())
    with database.read() as session:
        stored = VersionRepository(session).resolve("colours")
    assert stored == added
    assert stored.parents == ("shapes@v1", "mean")
    assert VersionDocument.of(stored).to_json()["mixed_from"] == mixed
    again = EmbeddingVersion.from_json(VersionDocument.of(stored).to_json())
    assert replace(again, created_at=0.0) == replace(stored, created_at=0.0, fingerprint=None)
    assert named(database) == [("colours@v1", "AACAPw==")]


@pytest.mark.parametrize("held_out", [None, (), (0, 3, 250_000)])
def test_a_version_keeps_what_was_held_out_of_its_training(
    database: Database, held_out: tuple[int, ...] | None
) -> None:
    with database.write() as session:
        VersionRepository(session).add(replace(sample_version(), held_out=held_out), sample_task())
        missing = session.scalar(text("SELECT count(*) FROM embedding_versions WHERE held_out IS NULL"))
    assert missing == (held_out is None)
    with database.read() as session:
        stored = VersionRepository(session).resolve("colours@v1")
    assert stored.held_out == held_out
    assert "held_out" not in VersionDocument.of(stored).to_json()
    assert EmbeddingVersion.from_json(VersionDocument.of(stored).to_json()).held_out is None


def test_a_version_that_an_earlier_service_tells_of_was_mixed_from_nothing(database: Database) -> None:
    with database.write() as session:
        document = VersionDocument.of(VersionRepository(session).add(sample_version(), sample_task())).to_json()
    del document["mixed_from"], document["learned_under"]
    again = EmbeddingVersion.from_json(document)
    assert (again.mixed_from, again.parents, again.origin) == ({}, ("random",), 1)


@pytest.mark.parametrize("at_once", [1, 2, 4, 5_000])
def test_more_versions_than_a_statement_takes_are_found_in_order(
    database: Database, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(versions, "PAIRS_AT_ONCE", at_once)
    for task in ("colours", "shapes", "shapes", "colours", "shapes"):
        publish(database, task)
    references = [("shapes", 3), ("colours", 2), ("nothing", 1), ("shapes", 1), ("colours", 1), ("shapes", 3)]
    with database.read() as session:
        published = VersionRepository(session).published(reference for reference in references)
    assert [version.reference for version in published] == ["colours@v1", "colours@v2", "shapes@v1", "shapes@v3"]


def test_only_a_version_of_a_living_task_is_found_by_its_number(database: Database) -> None:
    publish(database)
    with database.read() as session:
        repository = VersionRepository(session)
        assert repository.living("colours", 1) == repository.resolve("colours")
        assert repository.living("colours", 2) is None
    forget(database, "colours")
    with database.read() as session:
        assert VersionRepository(session).living("colours", 1) is None
