"""Open the database at this release's schema. Embedded mode migrates automatically; servers never do."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import inspect, make_url, text
from sqlalchemy.orm import Session

import migrations
from onboard.errors import ConflictError, DamagedError, NotAllowedError, OnboardError, StorageError
from onboard.registry.database import Database
from onboard.registry.tables import Table

if TYPE_CHECKING:
    from alembic.config import Config

    from onboard.settings import Settings


def open_database(settings: Settings) -> Database:
    """Open the registry of the settings at the schema revision of this release.

    Embedded mode creates its folder and migrates under a file lock.

    Raises:
        NotAllowedError: ONBOARD_HOME cannot be written.
        UnavailableError: PostgreSQL cannot be reached.
        ConflictError: the schema is older (run `onboard db upgrade`) or newer than this release.
    """
    if not settings.database_url:
        make_home(settings.resolved_home)
        database = Database(settings.resolved_database_url)
        database.close_to_others()
        if _revision(database) != migrations.HEAD:
            _migrate_under_lock(database, settings.resolved_home)
        return database
    check(settings.resolved_database_url)
    return Database(settings.resolved_database_url)


def make_home(home: Path) -> Path:
    """Create the home folder, readable by its owner only. Raises NotAllowedError or StorageError."""
    try:
        home.mkdir(parents=True, exist_ok=True, mode=0o700)
        writable = os.access(home, os.W_OK | os.X_OK, effective_ids=os.access in os.supports_effective_ids)
    except OSError as error:
        raise home_trouble(home, error) from error
    if not writable:
        raise _not_writable(home, "this user may not read and write there")
    return home


def home_trouble(home: Path, error: OSError, file: str | None = None) -> OnboardError:
    """Convert a failure to write in the home folder to an error.

    Args:
        file: the file or folder in it that failed.
    """
    if file and error.errno not in (errno.ENOSPC, errno.EDQUOT):
        return NotAllowedError("home-file-not-writable", file=str(file), reason=error.strerror or error, home=home)
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return StorageError("home-disk-full", home=home)
    return _not_writable(home, error.strerror or str(error))


def _not_writable(home: Path, reason: str) -> NotAllowedError:
    return NotAllowedError("home-not-writable", home=str(home), reason=reason)


def upgrade(url: str) -> None:
    """Migrate the database at `url` to this release's schema. Repeated or concurrent calls are safe."""
    with migrating(url) as migration:
        migration.upgrade()


class Migration:
    """A transaction that may change the schema.

    Args:
        session: session of that transaction.
    """

    def __init__(self, session: Session) -> None:
        self.session = session

    def upgrade(self) -> None:
        """Migrate the schema to the revision of this release."""
        from alembic import command

        command.upgrade(_config(self.session.connection()), "head")

    def downgrade(self, revision: str) -> None:
        """Migrate the schema back to an earlier revision."""
        from alembic import command

        command.downgrade(_config(self.session.connection()), revision)


@contextmanager
def migrating(url: str) -> Iterator[Migration]:
    """Open a transaction for schema changes. On a server, concurrent ones wait.

    Raises:
        ConflictError: the schema is newer than this release, or tables with our names belong to another program.
        DamagedError: rows in SQLite refer to rows that do not exist; nothing was changed.
    """
    with Database(url, foreign_keys=False) as database:
        require_known(_revision(database), "The database's schema")
        if database.is_sqlite:
            database.close_to_others(make=True)
            database.use_log()
        with database.write() as session:
            if not database.is_sqlite:
                session.execute(text("SELECT pg_advisory_xact_lock(hashtext('onboard.migrations'))"))
            _require_no_other_tables(session)
            yield Migration(session)
            if not session.in_transaction():
                return  # it was rolled back
            if database.is_sqlite and (broken := session.execute(text("PRAGMA foreign_key_check")).all()):
                raise DamagedError("rows-dangling", rows=len(broken))


def check(url: str) -> None:
    """Raise ConflictError unless the database at `url` has the schema revision of this release."""
    revision = revision_of(url)
    if revision == migrations.HEAD:
        return
    require_known(revision, "The database's schema")
    if revision is None:
        raise ConflictError("schema-missing", found=None, wanted=migrations.HEAD)
    raise ConflictError("schema-outdated", found=revision, wanted=migrations.HEAD)


def revision_of(url: str) -> str | None:
    """Return the schema revision of the database at `url`; None if it has no tables of Onboard, or does not exist."""
    with Database(url) as database:
        return _revision(database)


def require_known(revision: str | None, whose: str) -> None:
    """Raise ConflictError if this release does not know a schema's revision, so it is from a later one."""
    from alembic.script import ScriptDirectory

    known_revisions = {script.revision for script in ScriptDirectory.from_config(_config(None)).walk_revisions()}
    if revision is not None and revision not in known_revisions:
        raise ConflictError("schema-too-new", found=revision, wanted=migrations.HEAD, whose=whose)


def _migrate_under_lock(database: Database, home: Path) -> None:
    from filelock import FileLock

    try:
        lock = FileLock(home / "migrate.lock", mode=0o600).acquire()
    except OSError as error:
        raise home_trouble(home, error) from error
    with lock:
        if _revision(database) != migrations.HEAD:
            upgrade(database.url)


def _require_no_other_tables(session: Session) -> None:
    existing = set(inspect(session.connection()).get_table_names())
    conflicts = sorted(existing & Table.metadata.tables.keys())
    if conflicts and "alembic_version" not in existing:
        raise ConflictError("tables-of-other-program", tables=conflicts)


def _revision(database: Database) -> str | None:
    """Return the schema revision that the database records; None if there is none."""
    if database.is_sqlite and not Path(make_url(database.url).database or "").exists():
        return None
    with database.read() as session:
        if not inspect(session.connection()).has_table("alembic_version"):
            return None
        revision: str | None = session.execute(text("SELECT version_num FROM alembic_version")).scalar()
        return revision


def _config(connection: object) -> Config:
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(Path(migrations.__file__).parent).replace("%", "%%"))
    config.attributes["connection"] = connection
    return config
