"""Backups that are made while jobs run, and what they give when they are restored elsewhere."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import Any, Final

from sqlalchemy import select

from bench.chaos.checker import Violation, check
from bench.chaos.journal import Journal
from onboard.errors import OnboardError
from onboard.operations.backup.make import back_up
from onboard.operations.backup.restore import restore
from onboard.registry.services import Services, open_services
from onboard.registry.tables import EmbeddingVersionRow, JobRow
from onboard.serving.predictor import Predictor
from onboard.settings import Settings

KIND: Final = "backup"
_TEXTS: Final = ("the film was good", "a plot was awful", "film and plot was not same")
_ATTEMPTS: Final = 10
_AGAIN_SECONDS: Final = 2.0
_MOST_VERSIONS: Final = 40  # that answer, of each backup

Row = dict[str, Any]


class Backups:
    """Makes backups of a service and restores them.

    Args:
        services: the service.
        folder: where backups and restored homes go.
    """

    def __init__(self, services: Services, folder: Path, journal: Journal) -> None:
        self._services = services
        self._folder = folder
        self._journal = journal
        self._numbers = count(1)
        self._finished: list[Path] = []

    def begin(self) -> Callable[[], None]:
        """Make one while everything else runs; what is returned waits for it."""
        target = self._folder / f"backup-{next(self._numbers)}"
        thread = threading.Thread(target=self._make, args=(target,), name=target.name)
        thread.start()
        return thread.join

    def verdict(self) -> tuple[list[Violation], dict[str, int]]:
        """Restore every one into an empty home: is it whole, and does it answer as the service does?"""
        violations: list[Violation] = []
        answers = 0
        for backup in self._finished:
            settings = Settings(
                home=self._folder / f"restored-{backup.name}", base=self._services.settings.base, device="cpu"
            )
            try:
                restore(settings, str(backup), _nobody)
                with closing(open_services(settings)) as restored:
                    wrong, compared = self._compared(restored)
            except OnboardError as error:
                wrong, compared = [error.message], 0
            violations += [Violation(KIND, f"{backup.name}: {what}") for what in wrong]
            answers += compared
        return violations, {"restored": len(self._finished), "answers_compared": answers}

    def _make(self, target: Path) -> None:
        for _ in range(_ATTEMPTS):
            try:
                manifest, _copied = back_up(self._services, str(target), _nobody)
            except OnboardError as error:  # the database was away: an operator tries again
                self._journal.write("backup failed", message=error.message)
                time.sleep(_AGAIN_SECONDS)
                continue
            self._finished.append(target)
            self._journal.write("backup made", artifacts=manifest.artifacts["count"])
            return

    def _compared(self, restored: Services) -> tuple[list[str], int]:
        """The differences, and the number of compared answers."""
        with restored.database.read() as session:
            jobs = list(session.scalars(select(JobRow.id)))
        wrong = [violation.what for violation in check(restored, jobs, finished=False).violations]
        there, here = _versions(restored), _versions(self._services)
        wrong += [
            f"{task}@v{version} is another one"
            for task, version in there
            if there[task, version] != here.get((task, version))
        ]
        asked = list(_inputs(list(there)[-_MOST_VERSIONS:]))
        answers = [Predictor(services).predict(asked) for services in (restored, self._services)]
        wrong += [
            f"{request['task']}@{request['ref']} answers {request['text']!r} otherwise"
            for request, after, before in zip(asked, *answers, strict=True)
            if after != before
        ]
        return wrong, len(asked)


def _versions(services: Services) -> dict[tuple[str, int], tuple[str, str]]:
    """The stored data of every version that was learned, in the order of learning."""
    row = EmbeddingVersionRow
    statement = select(row.task, row.version, row.artifact, row.embedding_digest).where(row.job.is_not(None))
    with services.database.read() as session:
        rows = session.execute(statement.order_by(row.created_at)).all()
    return {(task, version): (artifact, digest) for task, version, artifact, digest in rows}


def _inputs(versions: Sequence[tuple[str, int]]) -> Iterator[Row]:
    for task, version in versions:
        yield from ({"task": task, "ref": f"v{version}", "text": text} for text in _TEXTS)


def _nobody(_message: str) -> None:
    """Hears of the progress."""
