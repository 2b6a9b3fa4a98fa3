"""The migrations make exactly the tables of the code, on SQLite and on PostgreSQL, from wherever they are installed."""

from __future__ import annotations

import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, create_engine, inspect, select, text, update
from support import watched_jobs as past
from support.real_services import PostgresServer
from support.refusals import refused
from support.registry_samples import ARTIFACT, BASE, register_sample_base, sample_spec, sample_task, sample_version

import migrations
from onboard.domain.job import Job, JobSpec, JobState, Stage
from onboard.domain.task import HypernetworkVersion, SnapshotRecord
from onboard.operations.access import create_token, identify, sign_in
from onboard.registry import schema
from onboard.registry.aliases import AliasRepository
from onboard.registry.artifacts import ArtifactRepository
from onboard.registry.audit import entries
from onboard.registry.bases import BaseRepository
from onboard.registry.claims import ClaimRepository
from onboard.registry.clock import read_clock
from onboard.registry.database import Database
from onboard.registry.deleting import DeletingRepository
from onboard.registry.descent import DescentRepository
from onboard.registry.events import EventRepository
from onboard.registry.job_figures import JobFigures
from onboard.registry.jobs import JobRepository
from onboard.registry.outbox import OutboxRepository
from onboard.registry.quota_tables import OwnedArtifactRow
from onboard.registry.snapshots import SnapshotRepository
from onboard.registry.tables import OF_EXPRESSIONS, BaseRow, HypernetworkRow, Table
from onboard.registry.tasks import TaskRepository
from onboard.registry.versions import VersionRepository
from onboard.storage.artifacts import digest_of


@pytest.fixture(autouse=True)
def _new_homes_are_copied() -> None:
    """Here each database is migrated by itself."""


@pytest.mark.filterwarnings("ignore:.*expression-based index")
def test_the_tables_of_the_code_and_of_the_migrations_are_the_same(database: Database) -> None:
    compared = {
        "compare_type": True,
        "compare_server_default": True,
        "include_object": lambda _, name, *__: name not in OF_EXPRESSIONS,
    }
    with database.read() as session:
        context = MigrationContext.configure(session.connection(), opts=compared)
        assert compare_metadata(context, Table.metadata) == []


def test_the_indexes_of_the_code_and_of_the_migrations_are_the_same_to_the_letter(
    database: Database, request: pytest.FixtureRequest
) -> None:
    """Conditions and expressions too, which Alembic does not compare."""
    url = "sqlite://" if database.is_sqlite else request.getfixturevalue("postgres").create("of_the_code")
    made = create_engine(url)
    with database.read() as session, made.connect() as connection:
        Table.metadata.create_all(connection)
        indexes = indexes_of(connection)
        assert indexes_of(session.connection()) == indexes
    made.dispose()
    assert set(OF_EXPRESSIONS) <= indexes.keys()


def indexes_of(connection: Connection) -> dict[str, str]:
    """Every index with the statement that makes it, as the database tells it."""
    of_sqlite = "SELECT name, sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL"
    of_postgres = (
        "SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = 'public' AND tablename <> 'alembic_version'"
    )
    statement = text(of_sqlite if connection.dialect.name == "sqlite" else of_postgres)
    return {name: " ".join(definition.split()) for name, definition in connection.execute(statement)}


def test_head_is_the_newest_file_and_files_carry_their_date() -> None:
    scripts = ScriptDirectory.from_config(schema._config(None))
    assert scripts.get_current_head() == migrations.HEAD
    assert tuple(script.revision for script in scripts.walk_revisions())[::-1] == migrations.REVISIONS
    for script in scripts.walk_revisions():
        dated = re.fullmatch(r"(\d{4})_(\d\d)_(\d\d)_[a-z0-9_]+\.py", Path(script.path).name)
        assert dated is not None
        assert script.revision.startswith("".join(dated.groups()))


def test_a_downgrade_takes_everything_away_again(database: Database) -> None:
    with database.write() as session:
        command.downgrade(schema._config(session.connection()), "base")
        assert inspect(session.connection()).get_table_names() == ["alembic_version"]
        command.upgrade(schema._config(session.connection()), "head")


def test_an_upgrade_from_the_first_schema_keeps_every_row_and_its_work_goes_on(database: Database) -> None:
    past.worker(database, "w1")
    ended, running = past.ended(database, ago=100), past.running(database, "w1", stage=Stage.TRAIN, note="step 1/2")
    queued = past.queued(database)
    with database.read() as session:
        before = [EventRepository(session).list(job) for job in (ended, running.id, queued.id)]
    with schema.migrating(database.url) as migration:
        migration.downgrade("20261121a")
    schema.upgrade(database.url)
    with database.write() as session:
        assert [EventRepository(session).list(job) for job in (ended, running.id, queued.id)] == before
        (attempt,) = JobFigures(session).attempts(read_clock(session))  # when it was claimed is no longer known
        assert (attempt.job.id, attempt.job.claimed_at, attempt.note) == (running.id, None, "step 1/2")
        claims = ClaimRepository(session)
        assert claims.heartbeat(running.id, 1) is False  # nobody has asked to cancel it
        claimed = claims.claim("w1", ["default"])
        assert claimed is not None
        assert claimed.id == queued.id
        claims.finish(claimed.id, 1, JobState.FAILED)
        assert JobRepository(session).get(ended).state is JobState.SUCCEEDED


DOOR = {"tokens", "sessions", "sign_in_codes", "audit_log", "webhook_events", "webhook_deliveries"}


def test_the_door_is_added_to_a_registry_in_use_and_taken_away_again(database: Database) -> None:
    register_sample_base(database)
    queued = past.queued(database)
    with database.write() as session:
        for _ in range(2):
            VersionRepository(session).add(sample_version(), sample_task())
        AliasRepository(session).move("colours", "production", 1, reason="promoted")
    _, lost = create_token(database, "lost", ["read"])
    sign_in(database, lost)
    with schema.migrating(database.url) as migration:
        migration.downgrade("20261121d")
        tables = inspect(migration.session.connection()).get_table_names()
    assert not DOOR & set(tables)
    with refused("schema-outdated"):
        schema.check(database.url)
    schema.upgrade(database.url)
    with database.write() as session:
        assert set(inspect(session.connection()).get_table_names()) >= DOOR
        assert JobRepository(session).get(queued.id).spec == queued.spec
        assert VersionRepository(session).resolve("colours@production").version == 1
        AliasRepository(session).move("colours", "production", 2, reason="promoted")
        OutboxRepository(session).address(["a"], 60.0)
        (event,) = OutboxRepository(session).due("a")
    assert (event.type, event.data["previous"]) == ("alias.moved", 1)  # what happened before is not told
    _, secret = create_token(database, "reader", ["read"])
    assert identify(database, secret).name == "reader"
    with database.read() as session:
        assert [entry.action for entry in entries(session, 10)] == ["token.create"]


def test_later_hypernetworks_and_carried_versions_survive_a_downgrade_and_the_upgrade_after_it(
    database: Database,
) -> None:
    register_sample_base(database)
    draft = HypernetworkVersion(base_digest=BASE, version=0, artifact=ARTIFACT, digest=ARTIFACT)
    carried = replace(sample_version(), kind="carried", hypernetwork_version=3, learned_under=1)
    with database.write() as session:
        for head in (1, 2):
            BaseRepository(session).advance(draft, expected_head=head)
        VersionRepository(session).add(carried, sample_task())
        collected = update(HypernetworkRow).where(HypernetworkRow.version == 2)
        session.execute(collected.values(artifact=None, collected_at=1.0))
    with schema.migrating(database.url) as migration:
        migration.downgrade("20261123a")
        columns = inspect(migration.session.connection()).get_columns("hypernetwork_versions")
        assert not {"collected_at", "retired_at"} & {column["name"] for column in columns}
    schema.upgrade(database.url)
    with database.read() as session:
        line = BaseRepository(session).hypernetworks(BASE)
        assert [(version.version, version.artifact, version.parent) for version in line] == [
            (1, ARTIFACT, None), (2, ARTIFACT, 1), (3, ARTIFACT, 2)
        ]  # fmt: skip
        assert BaseRepository(session).get(BASE).head == 3
        assert VersionRepository(session).resolve("colours").hypernetwork_version == 3


def down_and_up(database: Database, revision: str, table: str, column: str) -> None:
    """To a revision from before the column, and back."""
    with schema.migrating(database.url) as migration:
        migration.downgrade(revision)
        columns = {column["name"] for column in inspect(migration.session.connection()).get_columns(table)}
        assert column not in columns
    schema.upgrade(database.url)


def test_numbers_of_versions_go_on_after_the_upgrade_that_lets_them_be_deleted(database: Database) -> None:
    register_sample_base(database)
    with database.write() as session:
        for _ in range(3):
            VersionRepository(session).add(sample_version(), sample_task())
        TaskRepository(session).put(sample_task("empty"))
    down_and_up(database, "20261124a", "tasks", "last_version")
    with database.write() as session:
        versions = VersionRepository(session)
        assert [versions.next_number(task) for task in ("colours", "empty", "new")] == [4, 1, 1]
        DeletingRepository(session).remove(DescentRepository(session).root("colours"))
        assert versions.next_number("colours") == 4
        assert versions.add(sample_version(), sample_task()).version == 4


def test_versions_from_before_held_out_rows_were_kept_have_none_after_the_upgrade(database: Database) -> None:
    register_sample_base(database)
    with database.write() as session:
        VersionRepository(session).add(replace(sample_version(), held_out=(1, 2)), sample_task())
    down_and_up(database, "20261124b", "embedding_versions", "held_out")
    with database.write() as session:
        versions = VersionRepository(session)
        assert versions.resolve("colours@v1").held_out is None
        added = versions.add(replace(sample_version(), held_out=(3,)), sample_task())
        assert versions.resolve(added.reference).held_out == (3,)


def test_the_upgrade_learns_from_jobs_and_from_the_shipped_base_whether_versions_take_pairs(database: Database) -> None:
    register_sample_base(database)
    shipped = {task: {} for task in ("cola", "sst2", "mnli", "mrpc", "qnli", "qqp", "rte", "stsb")}
    with database.write() as session:
        session.execute(update(BaseRow).values(name="mini", document={"name": "mini", "sources": shipped}))
        for task in ("sst2", "mrpc"):
            VersionRepository(session).add(replace(sample_version(task), dataset_digest=""), sample_task(task))
    for task, fields in (("one", ["body"]), ("two", ["first", "second"]), ("unknown", None)):
        report = {} if fields is None else {"dataset_report": {"fields": {"text": fields, "label": "label"}}}
        job = add_job_of(database, replace(sample_spec(task, **report), dataset=digest_of(task.encode())))
        learned = replace(sample_version(task, job.id), dataset_digest=digest_of(task.encode()))
        with database.write() as session:
            VersionRepository(session).add(learned, sample_task(task))
            VersionRepository(session).add(replace(learned, kind="carried", job=None), sample_task(task))
    down_and_up(database, "20261124c", "embedding_versions", "pairs")
    with database.read() as session:
        versions = VersionRepository(session)
        assert [versions.resolve(task).pairs for task in ("sst2", "mrpc")] == [False, True]
        for task, pairs in (("one", False), ("two", True), ("unknown", None)):
            assert [versions.resolve(f"{task}@v{number}").pairs for number in (1, 2)] == [pairs] * 2


def test_versions_from_before_their_bytes_were_kept_get_them_by_their_files(database: Database) -> None:
    register_sample_base(database)
    readout = digest_of(b"readout")
    with database.write() as session:
        ArtifactRepository(session).add(readout, "readout", 35)
        VersionRepository(session).add(sample_version(), sample_task())
        VersionRepository(session).add(replace(sample_version(), readout=readout), sample_task())
    down_and_up(database, "20261125b", "embedding_versions", "stored_bytes")
    with database.read() as session:
        assert [version.stored_bytes for version in VersionRepository(session).list(task="colours")] == [7, 42]


def test_versions_from_before_there_were_temperatures_answer_as_they_did(database: Database) -> None:
    register_sample_base(database)
    with database.write() as session:
        VersionRepository(session).add(replace(sample_version(), temperature=1.5), sample_task())
    down_and_up(database, "20261126a", "embedding_versions", "temperature")
    with database.read() as session:
        assert VersionRepository(session).resolve("colours").temperature == 1.0


def add_job_of(database: Database, spec: JobSpec) -> Job:
    with database.write() as session:
        return JobRepository(session).add(spec)[0]


@pytest.mark.services
def test_the_upgrade_counts_what_is_stored_for_the_owners_of_earlier_jobs(database: Database) -> None:
    register_sample_base(database)
    sizes = {f"sha256:{letter * 64}": 10 ** (1 + place) for place, letter in enumerate("abcd")}
    rows, hashes, file, readout = sizes
    with database.write() as session:
        for digest, size in sizes.items():
            ArtifactRepository(session).add(digest, "test", size)
        spec = sample_spec("mood")
        snapshot = SnapshotRecord(spec.dataset, rows, hashes, "classification", ("a", "b"), {"train": 1})
        SnapshotRepository(session).add(snapshot)
        job, _ = JobRepository(session).add(spec, owner="shop")
        JobRepository(session).add(spec, owner="shop")
        JobRepository(session).add(spec)
        JobRepository(session).add(replace(spec, dataset=""), owner="lab")
        version = replace(sample_version("mood", job=job.id), artifact=file, readout=readout)
        VersionRepository(session).add(version, sample_task("mood"))
    with schema.migrating(database.url) as migration:
        migration.downgrade("20261129l")
    schema.upgrade(database.url)
    with database.read() as session:
        counted = {row.artifact: row.size_bytes for row in session.scalars(select(OwnedArtifactRow))}
        owners = session.scalars(select(OwnedArtifactRow.owner).distinct()).all()
    assert counted == sizes
    assert set(owners) == {"shop"}


def test_upgrades_of_a_server_at_once_wait_for_one_another(postgres: PostgresServer) -> None:
    url = postgres.create("upgraded_at_once") + "?options=-c%20lock_timeout%3D20s"  # fail rather than hang
    with ThreadPoolExecutor(4) as pool:
        for future in [pool.submit(schema.upgrade, url) for _ in range(4)]:
            future.result()
    schema.check(url)


def test_the_migrations_run_from_any_folder_with_a_percent_sign_in_its_name(tmp_path: Path) -> None:
    folder = tmp_path / "100%"
    folder.mkdir()
    program = "import sys; from onboard.registry.schema import upgrade, check; upgrade(sys.argv[1]); check(sys.argv[1])"
    subprocess.run([sys.executable, "-c", program, f"sqlite:///{folder}/x.db"], cwd=folder, check=True)


def test_developers_can_compare_tables_and_migrations_with_alembic_ini(tmp_path: Path, sqlite_url: str) -> None:
    root = Path(migrations.__file__).parent.parent
    if not (root / "alembic.ini").exists():
        pytest.skip("alembic.ini belongs to the checkout")
    alembic = subprocess.run(
        [sys.executable, "-m", "alembic", "-c", root / "alembic.ini", "check"],
        env={"ONBOARD_DATABASE_URL": sqlite_url, "PATH": ""}, cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert alembic.returncode == 0, alembic.stderr
