"""Tasks, versions and aliases of the service at ONBOARD_API_URL."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from cli.gateway import Document
from onboard.domain.limits import MAX_PAGE
from onboard.domain.names import LATEST, Reference, require_name

if TYPE_CHECKING:
    from onboard.client import Onboard
    from onboard.domain.wanted import Wanted


class RemoteVersions:
    """See `cli.gateway.Versions`."""

    def __init__(self, client: Onboard) -> None:
        self._client = client

    def tasks(self, wanted: Wanted) -> list[Document]:
        """The tasks that fit, page by page."""
        found: list[Document] = []
        cursor = None
        while True:
            page = self._client.get("/v1/tasks", **asdict(wanted), limit=MAX_PAGE, cursor=cursor)
            found += page["tasks"]
            cursor = page["next"]
            if cursor is None:
                return found

    def tasks_map(self) -> Document:
        """Every task's latest embedding in two dimensions, laid out here: the service has told all numbers."""
        from onboard.versions.task_map import Embedded, map_tasks

        found = self._client.get("/v1/embeddings", ref=LATEST)["embeddings"]
        return map_tasks([Embedded.from_document(each) for each in found])

    def task(self, task: str) -> Document:
        """A task."""
        return self._client.get(f"/v1/tasks/{require_name(task)}")

    def delete_task(self, task: str, unlearning: bool, dry_run: bool) -> Document:
        """Delete a task for good."""
        return self._client.delete_task(task, unlearn=unlearning, dry_run=dry_run)

    def versions(self, task: str, limit: int, before: int | None) -> Document:
        """The newest versions, page by page."""
        path, cursor = f"/v1/tasks/{require_name(task)}/versions", None if before is None else str(before)
        found: list[Document] = []
        while True:
            page = self._client.get(path, limit=min(limit - len(found), MAX_PAGE), cursor=cursor)
            found = page["versions"] + found  # a page is in the order of the numbers, and the newest page comes first
            cursor = page["next"]
            if cursor is None or len(found) >= limit:
                return {**page, "versions": found}

    def version(self, reference: str) -> Document:
        """A version."""
        return self._client.version(Reference.parse(reference))

    def compare(self, a: str, b: str) -> Document:
        """Two versions side by side."""
        return self._client.compare(a, b)

    def promote(self, reference: str, alias: str, if_better: bool) -> Document:
        """Let an alias mean a version."""
        return asdict(self._client.promote(reference, alias, if_better=if_better))

    def rollback(self, task: str, alias: str) -> Document:
        """Let an alias mean what it meant before."""
        return asdict(self._client.rollback(task, alias))

    def carry(self, task: str | None, dry_run: bool, on_page: Callable[[Document], None]) -> Document:
        """Carry a task to the head, or all."""
        return self._client.carry(task, dry_run=dry_run, on_page=on_page)

    def fetch(self, reference: str, folder: Path, bundle: bool) -> Sequence[Path]:
        """Write a version's files, verified."""
        from onboard.domain.task import FIRST_HYPERNETWORK, EmbeddingVersion
        from onboard.versions.fetch import BASE, HYPERNETWORK, write_files

        version = EmbeddingVersion.from_json(self.version(reference))
        embedding = self._client.embedding(version.reference)
        parts: dict[str, Callable[[Path], object]] = {}
        if bundle:
            parts[BASE] = lambda target: self._client.base(version.base_digest, target)
        if bundle and version.hypernetwork_version != FIRST_HYPERNETWORK:
            parts[HYPERNETWORK] = lambda target: self._client.hypernetwork(embedding.pins, target)
        return write_files(version, embedding.content, folder, parts)
