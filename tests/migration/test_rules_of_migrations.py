"""Migrations say whether the release before them works on their schema, and that is true."""

from __future__ import annotations

from pathlib import Path

import pytest
from alembic.script import Script, ScriptDirectory
from sqlalchemy import text
from support.expanding import obstacles, state_of
from support.later_release import LATER, STILL_LATER, add_migration, copy_migrations, migrate

import migrations
from onboard.registry import schema
from onboard.registry.compatibility import is_expanding, oldest_code
from onboard.registry.database import Database

pytestmark = pytest.mark.filterwarnings("ignore:.*expression-based index")
RECORDED = migrations.REVISIONS[migrations.REVISIONS.index(migrations.FIRST_RECORDED) :]


def scripts_in(folder: Path | None = None) -> ScriptDirectory:
    config = schema._config(None)
    if folder is not None:
        config.set_main_option("script_location", str(folder))
    return ScriptDirectory.from_config(config)


def script_of(revision: str) -> Script:
    script = scripts_in().get_revision(revision)
    assert script is not None
    return script


@pytest.mark.parametrize("revision", RECORDED)
def test_a_migration_declares_its_kind(revision: str) -> None:
    module = script_of(revision).module
    assert module.kind in ("expand", "contract")
    oldest = getattr(module, "oldest_code", None)
    if oldest is not None:
        assert module.kind == "contract"
        assert oldest in migrations.REVISIONS[: migrations.REVISIONS.index(revision) + 1]


@pytest.mark.parametrize("revision", [revision for revision in RECORDED if is_expanding(script_of(revision))])
def test_code_from_before_an_expanding_migration_works_on_its_schema(database: Database, revision: str) -> None:
    before = migrations.REVISIONS[migrations.REVISIONS.index(revision) - 1]
    with schema.migrating(database.url) as migration:
        migration.downgrade(revision)
        after = state_of(migration.session.connection())
        migration.downgrade(before)
        assert obstacles(state_of(migration.session.connection()), after) == []
        migration.session.rollback()


def obstacles_of(database: Database, folder: Path, upgrade: str) -> list[str]:
    """Those of one more migration."""
    add_migration(copy_migrations(folder), LATER, migrations.HEAD, 'kind = "expand"', upgrade)
    plain = "CREATE TABLE plain (a VARCHAR, b VARCHAR DEFAULT 'x' NOT NULL, c INTEGER UNIQUE)"
    with Database(database.url, foreign_keys=False) as migrated, migrated.write() as session:
        session.execute(text(plain))
        before = state_of(session.connection())
        migrate(session, folder)
        reasons = obstacles(before, state_of(session.connection()))
        session.rollback()
    return reasons


@pytest.mark.parametrize("upgrade", [
    'op.add_column("plain", sa.Column("d", sa.String(), nullable=True))',
    'op.add_column("plain", sa.Column("d", sa.String(), nullable=False, server_default="y"))',
    'op.create_table("new", sa.Column("name", sa.String(), primary_key=True))',
    'op.create_index("ix_plain_a", "plain", ["a"])',
    'op.execute("UPDATE plain SET a = b")',
])  # fmt: skip
def test_what_earlier_code_ignores_is_no_obstacle(database: Database, tmp_path: Path, upgrade: str) -> None:
    assert obstacles_of(database, tmp_path / "migrations", upgrade) == []


BATCH = 'batch = op.batch_alter_table("plain")\n    with batch as table: table.'


@pytest.mark.parametrize(("upgrade", "obstacle"), [
    ('op.drop_table("plain")', "plain is gone"),
    ('op.rename_table("plain", "new")', "plain is gone"),
    (f'{BATCH}drop_column("a")', "plain: a is gone"),
    (f'{BATCH}alter_column("a", new_column_name="e")', "plain: a is gone"),
    (f'{BATCH}alter_column("a", nullable=False)', "plain: a needs a value"),
    (f'{BATCH}alter_column("a", type_=sa.Text())', "plain: a has another type"),
    (f'{BATCH}alter_column("b", server_default=None)', "plain: b has no default any more"),
    (f'{BATCH}add_column(sa.Column("d", sa.String(), nullable=False))', "plain: d needs a value"),
    (f'{BATCH}create_unique_constraint("uq_plain", ["a", "b"])', "plain: ('unique', 'a', 'b') is new"),
    ('op.create_index("ix_plain_a", "plain", ["a"], unique=True)', "plain: ('unique', 'a') is new"),
    (f"{BATCH}create_check_constraint(\"ck_plain\", \"a <> ''\")", "plain: check"),
    (f'{BATCH}create_foreign_key("fk_plain", "artifacts", ["a"], ["digest"])', "plain: foreign key"),
])  # fmt: skip
def test_what_earlier_code_stumbles_over_is_an_obstacle(
    database: Database, tmp_path: Path, upgrade: str, obstacle: str
) -> None:
    reasons = obstacles_of(database, tmp_path / "migrations", upgrade)
    assert [reason for reason in reasons if reason.startswith(obstacle)] == reasons
    assert reasons


def test_the_oldest_code_is_that_of_the_last_migration_that_took_something_away(tmp_path: Path) -> None:
    folder = copy_migrations(tmp_path / "migrations")
    add_migration(folder, LATER, migrations.HEAD, 'kind = "expand"')
    add_migration(folder, STILL_LATER, LATER, 'kind = "contract"')
    add_migration(folder, "29990103a", STILL_LATER, 'kind = "expand"')
    add_migration(folder, "29990104a", "29990103a", f'kind = "contract"\noldest_code = "{LATER}"')
    add_migration(folder, "29990105a", "29990104a", 'kind = "contract"\noldest_code = "29990103a"')
    add_migration(folder, "29990106a", "29990105a", "")  # which says nothing
    scripts = scripts_in(folder)
    oldest = {
        script.revision: oldest_code(scripts, script.revision)
        for script in scripts.walk_revisions()
        if script.revision not in migrations.REVISIONS
    }
    assert oldest == {
        LATER: oldest_code(scripts, migrations.HEAD),
        STILL_LATER: STILL_LATER,
        "29990103a": STILL_LATER,
        "29990104a": STILL_LATER,
        "29990105a": "29990103a",
        "29990106a": "29990106a",
    }
