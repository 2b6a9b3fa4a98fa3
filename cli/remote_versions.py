"""Tasks, versions and aliases of the service at ONBOARD_API_URL."""

from __future__ import annotations

from collections.abc import Sequence
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
        from onboard.tasks_map import Embedded, map_tasks

        found = self._client.get("/v1/embeddings", ref=LATEST)["embeddings"]
        return map_tasks([Embedded.from_document(each) for each in found])

    def task(self, task: str) -> Document:
        """A task."""
        return self._client.get(f"/v1/tasks/{require_name(task)}")

    def delete_task(self, task: str) -> None:
        """Hide a task."""
        self._client.send("DELETE", f"/v1/tasks/{require_name(task)}")

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

    def fetch(self, reference: str, folder: Path, bundle: bool) -> Sequence[Path]:
        """Write a version's files, verified."""
        from onboard.domain.task import EmbeddingVersion
        from onboard.fetch import write_files

        version = EmbeddingVersion.from_json(self.version(reference))
        content = self._client.embedding(version.reference).content
        add_base = (lambda target: self._client.base(version.base_digest, target)) if bundle else None
        return write_files(version, content, folder, add_base)
