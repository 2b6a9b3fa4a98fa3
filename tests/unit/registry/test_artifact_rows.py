"""The rows of artifacts: announced before their bytes, collected when nothing needs them, on SQLite and PostgreSQL."""

from __future__ import annotations

import pytest
from sqlalchemy import update
from support.registry_samples import ARTIFACT, sample_spec

from onboard.domain.job import Stage
from onboard.domain.task import SnapshotRecord
from onboard.registry.artifacts import REFERENCES, UNKNOWN, ArtifactRecord, ArtifactRepository
from onboard.registry.database import Database
from onboard.registry.jobs import JobRepository
from onboard.registry.snapshots import SnapshotRepository, StageOutputRepository
from onboard.registry.tables import ArtifactRow
from onboard.storage.artifacts import digest_of

pytestmark = pytest.mark.usefixtures("registered_base")

LOOSE = digest_of(b"loose")
HOUR = 3600.0


def announce(database: Database, digest: str = LOOSE, hours_ago: float = 0.0) -> None:
    with database.write() as session:
        ArtifactRepository(session).add(digest, "test", 5)
        made = ArtifactRow.created_at - hours_ago * HOUR
        session.execute(update(ArtifactRow).where(ArtifactRow.digest == digest).values(created_at=made))


def collect(database: Database, older_than_seconds: float = 24 * HOUR, limit: int = 10) -> list[str]:
    with database.write() as session:
        return [record.digest for record in ArtifactRepository(session).collect(older_than_seconds, limit)]


def test_an_artifact_is_collected_only_when_it_is_old_and_nothing_needs_it(database: Database) -> None:
    announce(database, hours_ago=23)
    announce(database, ARTIFACT, hours_ago=100)  # the sample base's hypernetwork needs it
    assert collect(database) == []
    announce(database, hours_ago=25)
    assert collect(database) == [LOOSE]
    assert collect(database) == []


def test_announcing_an_old_artifact_again_makes_it_young(database: Database) -> None:
    announce(database, hours_ago=25)
    announce(database)
    assert collect(database) == []


def test_artifacts_are_collected_in_batches(database: Database) -> None:
    digests = {digest_of(str(number).encode()) for number in range(5)}
    for digest in digests:
        announce(database, digest, hours_ago=25)
    batches = [collect(database, limit=2) for _ in range(4)]
    assert [len(batch) for batch in batches] == [2, 2, 1, 0]
    assert {digest for batch in batches for digest in batch} == digests


def test_every_kind_of_row_that_names_an_artifact_keeps_it_and_is_named(database: Database) -> None:
    digests = [digest_of(name) for name in (b"rows", b"hashes", b"output")]
    for digest in digests:
        announce(database, digest, hours_ago=25)
    rows, hashes, output = digests
    with database.write() as session:
        SnapshotRepository(session).add(SnapshotRecord("sha256:rows", rows, hashes, "classification", (), {}))
        job, _ = JobRepository(session).add(sample_spec())
        StageOutputRepository(session).put("key", job.id, Stage.PROBE, output)
    assert collect(database) == []
    with database.read() as session:
        artifacts = ArtifactRepository(session)
        assert artifacts.users(rows) == ["snapshots sha256:rows"]
        assert artifacts.users(hashes) == ["snapshots sha256:rows"]
        assert artifacts.users(output) == ["stage_outputs key"]
        assert artifacts.users(ARTIFACT)[0].startswith("hypernetwork_versions sha256:")
        assert artifacts.users(LOOSE) == []


def test_garbage_collection_knows_every_column_that_names_an_artifact() -> None:
    assert {f"{column.table.name}.{column.name}" for column in REFERENCES} >= {
        "hypernetwork_versions.artifact",
        "snapshots.artifact",
        "snapshots.row_hashes",
        "stage_outputs.artifact",
        "embedding_versions.artifact",
    }


def test_bytes_without_a_row_get_one_but_never_instead_of_a_present_one(database: Database) -> None:
    announce(database)
    unknown = digest_of(b"found")
    with database.write() as session:
        artifacts = ArtifactRepository(session)
        artifacts.adopt(LOOSE, 99, 0.0)
        artifacts.adopt(unknown, 7, 0.0)
        assert artifacts.beginning_with(LOOSE[7:9]) == [ArtifactRecord(LOOSE, "test", 5)]
        assert artifacts.beginning_with(unknown[7:9]) == [ArtifactRecord(unknown, UNKNOWN, 7)]
    assert collect(database) == [unknown]


def test_a_shard_holds_the_digests_that_begin_like_it(database: Database) -> None:
    digests = [f"sha256:{start}{'0' * 62}" for start in ("00", "09", "0a", "0f", "10", "9f", "a0", "ff")]
    for digest in digests:
        announce(database, digest)
    with database.read() as session:
        artifacts = ArtifactRepository(session)
        for digest in digests:
            assert digest in [artifact.digest for artifact in artifacts.beginning_with(digest[7:9])]
            assert len(artifacts.beginning_with(digest[7:9])) <= 2  # the sample artifact may share one
        needed = {artifact.digest: artifact.referenced for artifact in artifacts.beginning_with(ARTIFACT[7:9])}
        assert needed[ARTIFACT]
