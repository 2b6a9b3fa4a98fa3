"""The `onboard` program as people have it: another process, a home, a base, an environment."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from onboard.domain.worker import WorkerRecord
from onboard.registry.services import Services, open_services
from onboard.registry.workers import WorkerRepository
from onboard.settings import Settings
from support.forked import run_forked

PROGRAM = Path(sys.executable).parent / "onboard"
Finished = subprocess.CompletedProcess[str]


@dataclass
class Place:
    """Where a user works.

    Args:
        folder: the present directory of every command; the home lies in it.
        base: folder of the base.
        more: other settings, by name.
    """

    folder: Path
    base: Path
    more: dict[str, str] = field(default_factory=dict)

    @property
    def home(self) -> Path:
        return self.folder / "home"

    @property
    def environment(self) -> dict[str, str]:
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            "OMP_NUM_THREADS": "1",
            "ONBOARD_HOME": str(self.home),
            "ONBOARD_BASE": str(self.base),
            "ONBOARD_DEVICE": "cpu",
            **self.more,
        }

    def run(self, *words: str | Path, given: str | None = None, **settings: str) -> Finished:
        """One command to its end, in its own process."""
        command = [str(word) for word in (PROGRAM, *words)]
        return run_forked(command, self.folder, {**self.environment, **settings}, given, 240)

    def json(self, *words: str | Path, code: int = 0, given: str | None = None, **settings: str) -> dict[str, Any]:
        """The one document that a command prints with --json; `code` is how it has to end."""
        done = self.run(*words, "--json", given=given, **settings)
        assert done.returncode == code, done.stdout + done.stderr
        document: dict[str, Any] = json.loads(done.stdout)
        return document

    def write(self, name: str, rows: Sequence[dict[str, Any]]) -> Path:
        path = self.folder / name
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        return path

    @contextmanager
    def services(self) -> Iterator[Services]:
        """A look into the home from here, without a process."""
        stored = self.more.get("ONBOARD_ARTIFACT_URL", "")
        services = open_services(Settings(home=self.home, base=str(self.base), device="cpu", artifact_url=stored))
        try:
            yield services
        finally:
            services.close()

    def workers(self) -> Sequence[WorkerRecord]:
        with self.services() as services, services.database.read() as session:
            return WorkerRepository(session).list(include_stopped=True)

    def leave(self) -> None:
        """End the workers that the commands started, and forget the home."""
        if (self.home / "onboard.db").exists():
            for worker in self.workers():
                kill_tree(worker.pid)
        shutil.rmtree(self.home, ignore_errors=True)


def kill_tree(pid: int | None) -> None:
    """kill -9 of a process and of its children, and wait until they are gone."""
    try:
        parent = psutil.Process(pid)
        family = [parent, *parent.children(recursive=True)]
    except psutil.NoSuchProcess:
        return
    for process in family:
        try:
            process.kill()
        except psutil.NoSuchProcess:
            continue
    psutil.wait_procs(family, timeout=30)


def remedy_of(done: Finished) -> str:
    """The last line on standard error, which says what to do."""
    return remedy_in(done.stderr)


def remedy_in(printed: str) -> str:
    """The same of what was printed there."""
    last = printed.rstrip("\n").splitlines()[-1]
    assert last.startswith("  → "), printed
    assert "Traceback" not in printed
    return last.removeprefix("  → ")
