"""The migrations make exactly the tables of the code, on SQLite and on PostgreSQL, from wherever they are installed."""

from __future__ import annotations

import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from real_services import PostgresServer
from sqlalchemy import inspect

import migrations
from onboard.registry import schema
from onboard.registry.database import Database
from onboard.registry.tables import Table


def test_the_tables_of_the_code_and_of_the_migrations_are_the_same(database: Database) -> None:
    with database.read() as session:
        context = MigrationContext.configure(
            session.connection(), opts={"compare_type": True, "compare_server_default": True}
        )
        assert compare_metadata(context, Table.metadata) == []


def test_head_is_the_newest_file_and_files_carry_their_date() -> None:
    scripts = ScriptDirectory.from_config(schema._config(None))
    assert scripts.get_current_head() == migrations.HEAD
    for script in scripts.walk_revisions():
        dated = re.fullmatch(r"(\d{4})_(\d\d)_(\d\d)_[a-z0-9_]+\.py", Path(script.path).name)
        assert dated is not None
        assert script.revision.startswith("".join(dated.groups()))


def test_a_downgrade_takes_everything_away_again(database: Database) -> None:
    with database.write() as session:
        command.downgrade(schema._config(session.connection()), "base")
        assert inspect(session.connection()).get_table_names() == ["alembic_version"]
        command.upgrade(schema._config(session.connection()), "head")


@pytest.mark.services
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
