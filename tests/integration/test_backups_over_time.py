"""Backups over time: into the same folder again, made while others write, and of older schemas."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine, text
from support.lively_service import Empty, fill, quiet, restored_into, rows_of, rows_of_home, server_settings, that_stay
from support.published import add_version, embedding_of

import migrations
from onboard.bases import Base
from onboard.hypernetworks.register import register_base
from onboard.operations.backup.archive import reading
from onboard.operations.backup.make import back_up
from onboard.operations.backup.manifest import pack_manifest
from onboard.operations.backup.rows import pack_rows, unpack_rows
from onboard.operations.gc import collect_garbage
from onboard.registry import dump
from onboard.registry.services import Services, open_services
from onboard.storage.artifacts import ArtifactStore


def test_the_same_folder_again_copies_only_what_is_new_and_drops_what_is_gone(
    lively: Services, tiny_base: Base, empty_home: Empty, tmp_path: Path
) -> None:
    target = tmp_path / "backup"
    first, _ = back_up(lively, str(target), quiet)
    add_version(lively, tiny_base, "mood", (1, 2), ("good", "bad"), z=embedding_of(4))
    (target / "sha256" / "00").mkdir(exist_ok=True)
    (target / "sha256" / "00" / f".{'0' * 64}.{'a' * 32}").write_bytes(b"half")
    second, copied = back_up(lively, str(target), quiet)
    assert copied.copied == 1
    assert copied.present == first.artifacts["count"]
    named = {digest for table in second.tables.values() for digest in table.parts}
    with reading(str(target)) as archive:
        listed = {
            row["digest"] for digest in second.tables["artifacts"].parts for row in unpack_rows(archive.get(digest))
        }
    assert {f"sha256:{path.name}" for path in (target / "sha256").rglob("*") if path.is_file()} == named | listed
    restored_into(empty_home, target)
    assert rows_of_home(empty_home)["embedding_versions"] == rows_of(lively)["embedding_versions"]


@pytest.fixture
def lively_server(tmp_path: Path, tiny_base: Base, postgres_url: str) -> Iterator[Services]:
    """The same service on PostgreSQL."""
    services = open_services(server_settings(tmp_path, tiny_base, postgres_url, "grown"))
    register_base(services, tiny_base)
    fill(services, tiny_base)
    yield services
    services.close()


@pytest.mark.parametrize("kind", ["lively", pytest.param("lively_server", marks=pytest.mark.services)])
def test_what_is_written_during_a_backup_is_in_it_wholly_or_not_at_all(
    tiny_base: Base,
    empty_home: Empty,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
    kind: str,
) -> None:
    """A version is published after the first table was read: neither its row nor its task's alias may be there."""
    service: Services = request.getfixturevalue(kind)
    rows, before = dump.rows, rows_of(service)
    published: list[int] = []

    def publish_in_between(session: Any, table: Any) -> Any:
        if table.name == "embedding_versions" and not published:
            published.append(add_version(service, tiny_base, "new", (1, 2), ("good", "bad")).version)
        return rows(session, table)

    monkeypatch.setattr(dump, "rows", publish_in_between)
    back_up(service, str(tmp_path / "backup"), quiet)
    monkeypatch.undo()
    assert published == [1]
    restored_into(empty_home, tmp_path / "backup")
    assert that_stay(rows_of_home(empty_home)) == that_stay(before)


@pytest.mark.parametrize("kind", ["home", pytest.param("server", marks=pytest.mark.services)])
def test_a_backup_of_an_older_schema_is_brought_to_this_one(
    lively: Services, tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """A revision after today's adds a column: the rows of today are loaded as they are, and migrated."""
    empty: Empty = request.getfixturevalue(f"empty_{kind}")
    back_up(lively, str(tmp_path / "backup"), quiet)
    scripts = tmp_path / "migrations"
    shutil.copytree(Path(migrations.__file__).parent, scripts)
    (scripts / "versions" / "2999_01_01_later.py").write_text(LATER.format(before=migrations.HEAD))
    monkeypatch.setattr(migrations, "__file__", str(scripts / "__init__.py"))
    monkeypatch.setattr(migrations, "REVISIONS", (*migrations.REVISIONS, "29990101a"))
    monkeypatch.setattr(migrations, "HEAD", "29990101a")
    restored_into(empty, tmp_path / "backup")
    engine = create_engine(empty.opened().database.engine.url)
    with engine.connect() as connection:
        assert connection.execute(text("SELECT DISTINCT shade FROM tasks")).scalars().all() == ["dark"]
        assert connection.execute(text("SELECT version_num FROM alembic_version")).scalars().all() == ["29990101a"]
    engine.dispose()


@pytest.mark.parametrize("kind", ["home", pytest.param("server", marks=pytest.mark.services)])
def test_a_backup_of_the_first_schema_is_brought_to_this_one(
    lively: Services, tmp_path: Path, request: pytest.FixtureRequest, kind: str
) -> None:
    """What the first release would have written: no transitions, time limits, fingerprints or later hypernetworks."""
    empty: Empty = request.getfixturevalue(f"empty_{kind}")
    target = tmp_path / "backup"
    manifest, _ = back_up(lively, str(target), quiet)
    new = {
        "jobs": ("time_limit_seconds", "claimed_at", "deadline_at", "needs_release", "passed_by"),
        "embedding_versions": (
            "fingerprint",
            "mixed_from",
            "learned_under",
            "held_out",
            "unlearning",
            "readout",
            "out_of_fold",
            "lesson",
            "prior_version",
            "prior_digest",
            "change",
        ),
        "aliases": ("names", "canary", "share", "canary_at"),
        "alias_history": ("names", "canary", "share"),
        "hypernetwork_versions": ("retired_at", "collected_at", "unlearning"),
        "tasks": ("last_version",),
    }
    store, tables = ArtifactStore(str(target)), dict(manifest.tables)
    for table in (
        "job_transitions",
        "tokens",
        "audit_log",
        "webhook_events",
        "webhook_deliveries",
        "job_shards",
        "prior_versions",
        "prior_lessons",
        "task_features",
        "drift_days",
        "annotations",
        "quotas",
        "owned_artifacts",
    ):
        del tables[table]
    for table, later in new.items():
        rows = [row for part in tables[table].parts for row in unpack_rows(store.get(part))]
        # of versions and jobs; the upgrade fills them in again, as far as it can
        gone = (*later, "pairs", "stored_bytes", "temperature", "provisional", "turn")
        old = pack_rows([{name: value for name, value in row.items() if name not in gone} for row in rows])
        tables[table] = tables[table].model_copy(update={"parts": (store.put(old, "rows"),)})
    earlier = manifest.model_copy(update={"revision": "20261121a", "tables": tables})
    (target / "manifest.json").write_bytes(pack_manifest(earlier))
    restored_into(empty, target)
    after = empty.opened()  # which refuses any schema but this code's
    expected, restored = rows_of(lively), rows_of(after)
    del new["tasks"]  # the number of a task's last version is counted
    for rows in (expected, restored):
        sizes = [row.pop("stored_bytes") for row in rows["embedding_versions"]]
        assert all(size > 0 for size in sizes)  # without the readouts, which the first release knew nothing of
    for row in expected["embedding_versions"]:
        row["temperature"] = 1.0  # as they answered without one
    for table, later in new.items():
        for row in expected[table]:
            row.update(dict.fromkeys(later))
    assert that_stay(restored) == that_stay(expected)
    assert {row["id"] for row in restored["jobs"]} == {row["id"] for row in expected["jobs"]}
    for table, later in new.items():
        assert all(row[name] is None for row in restored[table] for name in later)
    after.close()


@pytest.mark.parametrize("kind", ["lively", pytest.param("lively_server", marks=pytest.mark.services)])
def test_a_backup_made_while_versions_are_published_is_a_whole_service(
    tiny_base: Base, empty_home: Empty, tmp_path: Path, request: pytest.FixtureRequest, kind: str
) -> None:
    """Backups of different moments, each with all that its rows name, and no version left out in between."""
    service: Services = request.getfixturevalue(kind)
    over = threading.Event()

    def publish() -> int:
        number = 0
        while not over.is_set():
            number = add_version(service, tiny_base, "new", (1, 2), ("good", "bad"), z=embedding_of(number)).version
        return number

    with ThreadPoolExecutor(1) as pool:
        publishing = pool.submit(publish)
        try:
            for number in range(3):
                _, copied = back_up(service, str(tmp_path / f"{number}.zip"), quiet)
                assert copied.absent == []
        finally:
            over.set()
        assert publishing.result() > 0
    restored_into(empty_home, tmp_path / "2.zip")
    versions = [row for row in rows_of_home(empty_home)["embedding_versions"] if row["task"] == "new"]
    assert sorted(row["version"] for row in versions) == list(range(1, len(versions) + 1))
    after = empty_home.opened()
    assert collect_garbage(after).damaged == []
    after.close()


LATER = """
import sqlalchemy as sa
from alembic import op

revision = "29990101a"
down_revision = "{before}"
branch_labels = None
depends_on = None


def upgrade():
    with op.batch_alter_table("tasks") as batch_op:
        batch_op.add_column(sa.Column("shade", sa.String(), nullable=False, server_default="dark"))


def downgrade():
    with op.batch_alter_table("tasks") as batch_op:
        batch_op.drop_column("shade")
"""
