"""Tasks, versions and aliases of this environment's service."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from cli.gateway import Document
from cli.waking import start_webhook_worker, wake
from onboard.domain.names import require_name

if TYPE_CHECKING:
    from onboard.domain.wanted import Wanted
    from onboard.services import Services


class LocalVersions:
    """See `cli.gateway.Versions`."""

    def __init__(self, services: Services) -> None:
        self._services = services

    def tasks(self, wanted: Wanted) -> list[Document]:
        """The tasks that fit."""
        from onboard.domain.wanted import task_document
        from onboard.registry.search import SearchRepository

        with self._services.database.read() as session:
            found = SearchRepository(session).tasks(wanted)
        return [task_document(task, latest) for task, latest in found]

    def tasks_map(self) -> Document:
        """Every task's latest embedding in two dimensions."""
        from onboard.versions.task_map import embedded_tasks, map_tasks

        return map_tasks(embedded_tasks(self._services))

    def task(self, task: str) -> Document:
        """A task."""
        from onboard.versions.describe import describe_task

        return describe_task(self._services.database, require_name(task))

    def delete_task(self, task: str, unlearning: bool, dry_run: bool) -> Document:
        """Delete a task for good."""
        from onboard.versions.delete import delete_task

        deleted = delete_task(self._services, require_name(task), unlearning=unlearning, dry_run=dry_run)
        if not dry_run:
            for queue in sorted(deleted.queues):
                wake(self._services, queue)
            start_webhook_worker(self._services)
        return deleted.to_json()

    def versions(self, task: str, limit: int, before: int | None) -> Document:
        """The newest versions."""
        from onboard.versions.describe import versions_page

        return versions_page(self._services.database, require_name(task), limit, before)

    def version(self, reference: str) -> Document:
        """A version."""
        from onboard.registry.versions import VersionRepository

        with self._services.database.read() as session:
            return VersionRepository(session).resolve(reference).to_json()

    def compare(self, a: str, b: str) -> Document:
        """Two versions side by side."""
        from onboard.versions.compare import compare

        return compare(self._services, a, b).to_json()

    def promote(self, reference: str, alias: str, if_better: bool) -> Document:
        """Let an alias mean a version."""
        from onboard.versions.promote import promote

        moved = promote(self._services, reference, alias, if_better=if_better)
        start_webhook_worker(self._services)
        return moved.to_json()

    def rollback(self, task: str, alias: str) -> Document:
        """Let an alias mean what it meant before."""
        from onboard.versions.promote import rollback

        moved = rollback(self._services, task, alias)
        start_webhook_worker(self._services)
        return moved.to_json()

    def carry(self, task: str | None, dry_run: bool, on_page: Callable[[Document], None]) -> Document:
        """Carry a task to the head, or all."""
        from onboard.versions.carry import carry

        found = carry(self._services, task, dry_run=dry_run, on_page=lambda page: on_page(page.to_json()))
        if any(outcome.version for outcome in found.outcomes):
            start_webhook_worker(self._services)
        return found.to_json()

    def fetch(self, reference: str, folder: Path, bundle: bool) -> Sequence[Path]:
        """Write a version's files."""
        from onboard.versions.fetch import fetch

        return fetch(self._services, reference, folder, bundle).files
