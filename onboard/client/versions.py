"""What a program wants of a remote service with versions: compare, release, carry, delete, take their base along."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from onboard.client.aliases import Aliases
from onboard.client.answers import MovedAlias, Pins
from onboard.client.asking import Asking
from onboard.client.bases import download_base, download_hypernetwork
from onboard.client.connection import PATIENCE_SECONDS, document_of
from onboard.domain.names import Reference, require_alias, require_name
from onboard.errors import UnavailableError


class Versions(Asking):
    """Published versions, the names that they have, and what they are pinned to."""

    def promote(self, reference: str, alias: str, *, if_better: bool = False) -> MovedAlias:
        """Let an alias mean TASK@vN, or what another alias means. Somebody else's move meanwhile is not overwritten.

        Args:
            if_better: only when it is significantly better than what the alias means now.

        Raises:
            NotFoundError: no such version.
            NotBetterError: it is not better.
            PreconditionFailedError: somebody else moved the alias just now.
        """
        asked, name = Reference.parse(reference), require_alias(alias)
        version = asked.version or self.version(asked)["version"]
        return Aliases(self._connection, asked.task).promote(name, version, if_better=if_better)

    def rollback(self, task: str, alias: str) -> MovedAlias:
        """Let an alias mean what it meant before; again goes one further back.

        Raises:
            NotFoundError: no such alias.
            ConflictError: nothing came before.
            PreconditionFailedError: somebody else moved it just now.
        """
        return Aliases(self._connection, require_name(task)).rollback(require_alias(alias))

    def compare(self, earlier: str, later: str) -> dict[str, Any]:
        """Two versions of a task side by side, as `onboard compare --json` prints them; the verdict is about `later`.

        Raises:
            InputError: no references, or of two tasks.
            NotFoundError: no such version.
        """
        a, b = Reference.parse_pair(earlier, later)
        path = f"/v1/tasks/{a.task}/compare?a={a.ref}&b={b.ref}"
        return self.send("GET", path, repeatable=True, timeout_seconds=PATIENCE_SECONDS)

    def delete_task(self, task: str, *, unlearn: bool = False, dry_run: bool = False) -> dict[str, Any]:
        """Delete a task for good, as `onboard tasks delete --json` prints it. Needs the scope admin.

        Args:
            unlearn: rebuild what descends from it, from its own rows.
            dry_run: only say what would go, and what descends from it.

        Raises:
            NotFoundError: no such task.
            ConflictError: it cannot be unlearned, or the service is at other maintenance.
            StorageError: the task is deleted, but not all of its files.
            UnavailableError: the service cannot be reached, or cannot delete for good.
        """
        options = {"unlearn": unlearn, "dry_run": dry_run}
        response = self._connection.request(
            "DELETE", f"/v1/tasks/{require_name(task)}", repeatable=False, timeout_seconds=PATIENCE_SECONDS,
            build=lambda: {"params": {name: "true" for name, asked in options.items() if asked}},
        )  # fmt: skip
        document = document_of(response)
        if not document:
            raise UnavailableError(
                f"The service is of an earlier version: it has only hidden {task!r}.",
                "Upgrade the service, then delete the task again.",
            )
        return document

    def carry(
        self,
        task: str | None = None,
        *,
        dry_run: bool = False,
        on_page: Callable[[dict[str, Any]], None] | None = None,
    ) -> dict[str, Any]:
        """Let a task, or all that are not at the head, go on under it: as `onboard tasks carry --json` prints it.

        Args:
            dry_run: judge only, change nothing.
            on_page: without a task: called with every few that are done.

        Raises:
            NotFoundError: no such task. What the guard refuses is no error: it stands under "refused".
        """
        carried: dict[str, Any] = {"dry_run": dry_run, "carried": [], "refused": []}
        path = "/v1/carry" if task is None else f"/v1/tasks/{require_name(task)}/carry"
        body: dict[str, Any] = {"dry_run": dry_run}
        while True:  # a few tasks a request; again where an answer was lost: what is at the head is not carried twice
            page = document_of(
                self._connection.request(
                    "POST", path, repeatable=True, timeout_seconds=PATIENCE_SECONDS, build=lambda: {"json": body}
                )
            )
            carried["carried"] += page["carried"]
            carried["refused"] += page["refused"]
            if task is None and on_page is not None:
                on_page(page)
            if page["next"] is None:
                return carried
            body["cursor"] = page["next"]

    def version(self, reference: Reference) -> dict[str, Any]:
        """A version's document without its numbers, as `onboard versions --json` prints it. Raises NotFoundError."""
        document = self.get(f"/v1/tasks/{reference.task}/embeddings/{reference.ref}")
        document.pop("z", None)
        return document

    def base(self, digest: str, folder: Path) -> Path:
        """The files of the base of that digest, verified: with an embedding all that predictions elsewhere need.

        An embedding that is pinned to a later hypernetwork than the base's first needs that, too: see `hypernetwork`.

        Args:
            folder: a new one, or one that holds this base already.

        Raises:
            NotFoundError: the service has not got it.
            ConflictError: the folder holds something else.
            DamagedError: what came is not the base.
        """
        return download_base(self._connection, digest, folder)

    def hypernetwork(self, pins: Pins, path: Path) -> Path:
        """The file of the hypernetwork that an embedding is pinned to, verified. The first one lies in the base, too.

        Args:
            pins: of the embedding: `embedding.pins`.
            path: of the file; beside `embedding.safetensors` and `base/` a bundle has it as
                `hypernetwork.safetensors`.

        Raises:
            NotFoundError: the service has not got it.
            DamagedError: what came is another file.
        """
        return download_hypernetwork(self._connection, pins, path)
