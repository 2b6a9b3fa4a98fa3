"""A later release: a copy of this one with another version, more migrations, and code that uses them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy.orm import Session

import migrations
from onboard.registry.database import Database
from onboard.settings import Settings

ROOT = Path(migrations.__file__).parent.parent
LATER, STILL_LATER = "29990101a", "29990102a"

_MIGRATION = """
import sqlalchemy as sa
from alembic import op

revision = "{revision}"
down_revision = "{before}"
branch_labels = None
depends_on = None
{declared}


def upgrade():
    {upgrade}
"""
ADDS = (
    'op.add_column("jobs", sa.Column("colour", sa.String(), nullable=True))\n'
    '    op.create_table("moods", sa.Column("name", sa.String(), primary_key=True))'
)
RENAMES = 'op.drop_index("ix_jobs_passed", "jobs")\n    op.drop_column("jobs", "passed_by")'


def add_migration(folder: Path, revision: str, before: str, declared: str, upgrade: str = "pass") -> None:
    """Write one more migration into a copy of the migrations."""
    text = _MIGRATION.format(revision=revision, before=before, declared=declared, upgrade=upgrade)
    day = f"{revision[:4]}_{revision[4:6]}_{revision[6:8]}"
    (folder / "versions" / f"{day}_later_{revision[8:]}.py").write_text(text)


def copy_migrations(folder: Path) -> Path:
    """A copy of the migrations, to which a test adds its own."""
    shutil.copytree(ROOT / "migrations", folder, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def migrate(session: Session, folder: Path) -> None:
    """Bring a database to the newest revision of the migrations in `folder`."""
    config = Config()
    config.set_main_option("script_location", str(folder))
    config.attributes["connection"] = session.connection()
    command.upgrade(config, "head")


def make_later(url: str, folder: Path, declared: str = 'kind = "expand"', upgrade: str = ADDS) -> None:
    """Bring a database to a schema that this release does not know."""
    add_migration(copy_migrations(folder), LATER, migrations.HEAD, declared, upgrade)
    with Database(url, foreign_keys=False) as database, database.write() as session:
        migrate(session, folder)


class LaterRelease:
    """The programs of a later release. Its first migration only adds; its code fills the added column.

    Args:
        folder: a new folder for its code.
        settings: of the service.
    """

    def __init__(self, folder: Path, settings: Settings) -> None:
        self.folder = folder
        self._environment = {
            f"ONBOARD_{name.upper()}": json.dumps(value) if isinstance(value, bool) else str(value)
            for name, value in settings.model_dump(mode="json", exclude_unset=True).items()
        }
        for package in ("onboard", "workers", "cli", "migrations"):
            shutil.copytree(ROOT / package, folder / package, ignore=shutil.ignore_patterns("__pycache__", "mini"))
        self.replace("onboard/__init__.py", '__version__ = "', '__version__ = "99.')
        self._add_revision(LATER, migrations.HEAD, 'kind = "expand"', ADDS)
        needs = "    needs_release: Mapped[int | None]"
        self.replace("onboard/registry/tables.py", needs, f"    colour: Mapped[str | None]\n{needs}")
        pinned = "                needs_release="
        self.replace("onboard/registry/jobs.py", pinned, f'                colour="blue",\n{pinned}')

    def contract(self, *, rename: bool) -> None:
        """Make it a release with one more migration, on which earlier code does not work.

        Args:
            rename: the migration drops a column of jobs, whose place another column has taken.
        """
        self._add_revision(STILL_LATER, LATER, 'kind = "contract"', RENAMES if rename else "pass")
        if rename:
            self.replace("onboard/registry/tables.py", "    colour: Mapped[str | None]\n", "")
            passed = "    passed_by: Mapped[str | None]"
            self.replace("onboard/registry/tables.py", passed, f'{passed} = mapped_column("colour")')
            self.replace("onboard/registry/jobs.py", '                colour="blue",\n', "")

    def _add_revision(self, revision: str, before: str, *steps: str) -> None:
        add_migration(self.folder / "migrations", revision, before, *steps)
        self.replace("migrations/__init__.py", f'"{before}",', f'"{before}", "{revision}",')

    def replace(self, file: str, old: str, new: str) -> None:
        """Change its code in one place."""
        path = self.folder / file
        code = path.read_text(encoding="utf-8")
        assert code.count(old) == 1, (file, old)
        path.write_text(code.replace(old, new), encoding="utf-8")

    def _started(self, *words: str, **pipes: int) -> subprocess.Popen[str]:
        here = {"PATH": os.environ["PATH"], "OMP_NUM_THREADS": "1", "PYTHONPATH": str(self.folder)}
        return subprocess.Popen(
            [sys.executable, "-m", "onboard", *words], cwd=self.folder, text=True, env={**here, **self._environment},
            **pipes,
        )  # fmt: skip

    def run(self, *words: str) -> str:
        """Run one command to its end and return its output."""
        process = self._started(*words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        output, _ = process.communicate(timeout=240)
        assert process.returncode == 0, output
        return output

    @contextmanager
    def serving(self, *words: str) -> Iterator[None]:
        """Run a command that goes on until the end of the block."""
        process = self._started(*words)
        try:
            yield
        finally:
            process.terminate()
            process.wait(60)
