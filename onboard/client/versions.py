"""Requests about tasks and versions: list, promote, delete, download."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from onboard.client.aliases import promote, rollback
from onboard.client.answers import Pins
from onboard.client.asking import Asking, get, pages, send, text
from onboard.client.bases import download_base, download_hypernetwork, download_readout, download_weights
from onboard.client.connection import PATIENCE_SECONDS
from onboard.client.json_object import JsonObject
from onboard.client.steps import Steps, operation
from onboard.contract.drift import DriftDocument
from onboard.contract.versions import AliasMoveDocument
from onboard.domain.methods import content_of
from onboard.domain.names import Reference, require_alias, require_name
from onboard.domain.prior import require_form
from onboard.domain.task import AliasNames
from onboard.errors import NotFoundError, UnavailableError

if TYPE_CHECKING:
    from onboard.domain.label_change import LabelChange
    from onboard.domain.prior import Form
    from onboard.domain.task_search import TaskSearch


class Versions(Asking):
    """Tasks, their versions, aliases and pins."""

    @operation
    def task_documents(self, search: TaskSearch) -> Steps[list[JsonObject]]:
        """Return matching tasks by name, with their latest versions."""
        return task_documents(search)

    @operation
    def task_document(self, task: str) -> Steps[JsonObject]:
        """Return a task with its latest version and aliases. Raises NotFoundError."""
        return get(f"/v1/tasks/{require_name(task)}")

    @operation
    def versions_page(self, task: str, limit: int, before: int | None = None) -> Steps[JsonObject]:
        """Return a page of `versions`, newest first, before a number, and the `aliases`. Raises NotFoundError."""
        return versions_page(task, limit, before)

    @operation
    def alias_names(self, reference: str) -> Steps[AliasNames]:
        """Return the label names of a reference's alias, if they differ from the version's."""
        named = Reference.parse(reference)
        if named.alias is None:
            return ()
        document = yield from get(f"/v1/tasks/{named.task}/aliases/{named.alias}")
        return document.given("names", list) or ()

    @operation
    def map_document(self) -> Steps[JsonObject]:
        """Return the map of tasks, as printed by `onboard tasks map --json`. Raises AnswerError."""
        document = yield from get("/map.json")
        for task in document.parts("tasks"):
            task.read("task", str), task.read("x", float), task.read("y", float)
        return document

    @operation
    def promote(
        self,
        reference: str,
        alias: str,
        *,
        if_better: bool = False,
        as_before: bool = False,
        share: float | None = None,
    ) -> Steps[AliasMoveDocument]:
        """Move an alias to TASK@vN, or to the version of another alias. Never overwrites a concurrent move.

        A move ends the alias's canary. With `share` the version becomes the canary and the alias does not move.

        Args:
            if_better: only if it is significantly better than the alias's current version.
            as_before: keep the previous label names for users of the alias, if labels were renamed since.
            share: fraction of the alias's texts that the version answers as its canary, such as 0.1; 0 ends the canary.

        Raises:
            InputError: a name or the share is invalid.
            NotFoundError: the version does not exist.
            ConflictError: the version cannot be the alias's canary, or is not, so that it cannot end.
            NotBetterError: it is not better.
            PreconditionFailedError: somebody else has just moved the alias.
        """
        parsed, name = Reference.parse(reference), require_alias(alias)
        version = parsed.version or (yield from version_document(parsed)).read("version", int)
        attempts = self._connection.attempts
        return (
            yield from promote(
                parsed.task, name, version, attempts, if_better=if_better, as_before=as_before, share=share
            )
        )

    @operation
    def rollback(self, task: str, alias: str) -> Steps[AliasMoveDocument]:
        """Move an alias to its previous version, or end its canary if it has one. Repeat to go further back.

        Raises:
            NotFoundError: the alias does not exist.
            ConflictError: there is no previous version.
            PreconditionFailedError: somebody else has just moved it.
        """
        return rollback(require_name(task), require_alias(alias), self._connection.attempts)

    @operation
    def drift(self, reference: str) -> Steps[DriftDocument]:
        """Return how a version's texts of the newest week differ from its training rows and from the previous week.

        Args:
            reference: TASK[@latest|@vN|@ALIAS].

        Raises:
            NotFoundError: the task or version does not exist.
        """
        named = Reference.parse(reference)
        return (yield from get(f"/v1/tasks/{named.task}/drift", ref=named.ref)).parsed(DriftDocument)

    @operation
    def labels_document(self, task: str) -> Steps[JsonObject]:
        """Return the labels of a task's newest rows, as printed by `onboard labels TASK --json`.

        Raises NotFoundError.
        """
        return get(f"/v1/tasks/{require_name(task)}/labels")

    @operation
    def change_labels(self, task: str, asked: LabelChange, *, fast: bool = False) -> Steps[JsonObject]:
        """Change labels, like `onboard labels TASK rename A B --json`. Raises the same errors as the command."""
        return change_labels(task, asked, fast=fast)

    @operation
    def delete_task(self, task: str, *, unlearn: bool = False, dry_run: bool = False) -> Steps[JsonObject]:
        """Delete a task permanently; returns the output of `onboard tasks delete --json`. Needs the scope admin.

        Args:
            unlearn: rebuild its descendants from their own rows.
            dry_run: only report what would be deleted, and its descendants.

        Raises:
            NotFoundError: the task does not exist.
            ConflictError: it cannot be unlearned, or the service is busy with other maintenance.
            StorageError: the task is deleted, but not all of its files.
            UnavailableError: the service cannot be reached, or cannot delete permanently.
        """
        options = urlencode({name: "true" for name, enabled in (("unlearn", unlearn), ("dry_run", dry_run)) if enabled})
        path = f"/v1/tasks/{require_name(task)}{'?' if options else ''}{options}"
        document = yield from send("DELETE", path, timeout_seconds=PATIENCE_SECONDS)
        if not document:
            raise UnavailableError("task-only-hidden", task=task)
        return document

    @operation
    def version_document(self, reference: str | Reference) -> Steps[JsonObject]:
        """Return a version without its numbers, as printed by `onboard versions --json`. Raises NotFoundError."""
        return version_document(reference)

    @operation
    def readout(self, reference: str | Reference) -> Steps[bytes]:
        """Return the verified file of a version's readout, `readout.safetensors`.

        Raises:
            NotFoundError: the version does not exist or has no readout.
            DamagedError: the downloaded file is different.
        """
        document = yield from version_document(reference)
        resolved = Reference(document.read("task", str), None, document.read("version", int))
        promised = document.given("readout", str)
        if promised is None:
            raise NotFoundError("version-without-readout", version=resolved, task=resolved.task)
        return (yield from download_readout(resolved, promised))

    @operation
    def weights(self, reference: str | Reference) -> Steps[bytes]:
        """Return the verified file of a version without an embedding, `weights.safetensors`.

        Raises:
            InputError: this release does not support the version's method.
            NotFoundError: the version does not exist or has an embedding.
            DamagedError: the downloaded file is different.
        """
        document = yield from version_document(reference)
        resolved = Reference(document.read("task", str), None, document.read("version", int))
        method = document.read("method", str)
        if content_of(method, str(resolved)) == "embedding":
            raise NotFoundError("version-without-weights", asked=str(resolved))
        return (yield from download_weights(resolved, document.read("artifact", str)))

    @operation
    def hypernetworks(self, base: str | None = None) -> Steps[JsonObject]:
        """Return the hypernetworks of a base by name or digest; None means the default base. Raises NotFoundError."""
        return (yield from get("/v1/hypernetworks", base=(yield from _digest(base))))

    @operation
    def hypernetwork_version(self, version: int, base: str | None = None) -> Steps[JsonObject]:
        """Return a hypernetwork with the versions pinned to it and the guard's verdict. Raises NotFoundError."""
        return (yield from get(f"/v1/hypernetworks/{version}", base=(yield from _digest(base))))

    @operation
    def revert_hypernetwork(self, version: int, base: str | None = None) -> Steps[JsonObject]:
        """Make a hypernetwork the head again. Needs the scope ops. Raises NotFoundError, ConflictError."""
        digest = yield from _digest(base)
        path = f"/v1/hypernetworks/{version}/revert{f'?base={digest}' if digest else ''}"
        return (yield from send("POST", path))

    @operation
    def priors(self, base: str | None = None) -> Steps[JsonObject]:
        """Return the priors of a base, and the contributions of earlier tasks. Raises NotFoundError."""
        return (yield from get("/v1/priors", base=(yield from _digest(base))))

    @operation
    def prior(self, form: Form = "single", version: int | None = None, base: str | None = None) -> Steps[JsonObject]:
        """Return a prior (None means the head) with the tasks that taught it. Raises NotFoundError, InputError."""
        form = require_form(form)
        digest = yield from _digest(base)
        return (yield from get(f"/v1/priors/{form}", version=version, base=digest))

    @operation
    def bases(self, name: str | None = None) -> Steps[list[JsonObject]]:
        """Return available bases, or the one with this name. Raises NotFoundError."""
        return bases(name)

    @operation
    def base_card(self, digest: str) -> Steps[str]:
        """Return the card of a base as Markdown. Raises NotFoundError, also if the service has never used the base."""
        return text(f"/v1/bases/{digest}/card.md")

    @operation
    def base(self, digest: str, folder: str | Path) -> Steps[Path]:
        """Download and verify the files of a base. With an embedding, they suffice for predictions.

        An embedding that is pinned to a later hypernetwork than the base's first also needs that one: see
        `hypernetwork`.

        Args:
            folder: a new one, or one that already contains this base.

        Raises:
            NotFoundError: the service does not have it.
            ConflictError: the folder contains other files.
            DamagedError: the downloaded files are not the base.
        """
        return download_base(digest, Path(folder), self._connection.attempts)

    @operation
    def hypernetwork(self, pins: Pins, path: str | Path) -> Steps[Path]:
        """Download and verify the hypernetwork that an embedding is pinned to. The first one is also part of the base.

        Args:
            pins: of the embedding: `embedding.pins`.
            path: of the file. In a bundle, it is `hypernetwork.safetensors`, next to `embedding.safetensors` and
                `base/`.

        Raises:
            NotFoundError: the service does not have it.
            DamagedError: the downloaded file is different.
        """
        return download_hypernetwork(pins, Path(path), self._connection.attempts)


def task_documents(search: TaskSearch) -> Steps[list[JsonObject]]:
    """See `Versions.task_documents`."""
    found = yield from pages("/v1/tasks", "tasks", **asdict(search))
    return [task for page in found for task in page.parts("tasks")]


def versions_page(task: str, limit: int, before: int | None) -> Steps[JsonObject]:
    """See `Versions.versions_page`."""
    cursor = None if before is None else str(before)
    found = yield from pages(f"/v1/tasks/{require_name(task)}/versions", "versions", limit, cursor=cursor)
    # each page is in ascending order, and the newest page comes first
    versions = [version for page in reversed(found) for version in page.parts("versions")]
    return JsonObject.of({**found[-1], "versions": versions}, found[-1].place)


def change_labels(task: str, asked: LabelChange, *, fast: bool = False) -> Steps[JsonObject]:
    """See `Versions.change_labels`."""
    body: dict[str, Any] = {"action": asked.action, "labels": list(asked.labels)}
    body |= {} if asked.to is None else {"to": asked.to}
    body |= {} if asked.description is None else {"description": asked.description}
    body |= {"fast": True} if fast else {}
    return send("POST", f"/v1/tasks/{require_name(task)}/labels", body, timeout_seconds=PATIENCE_SECONDS)


def version_document(reference: str | Reference) -> Steps[JsonObject]:
    """See `Versions.version_document`."""
    asked = Reference.parse(reference) if isinstance(reference, str) else reference
    document = yield from get(f"/v1/tasks/{asked.task}/embeddings/{asked.ref}")
    document.pop("z", None)
    return document


def bases(name: str | None) -> Steps[list[JsonObject]]:
    """See `Versions.bases`."""
    found = list((yield from get("/v1/bases", name=name)).parts("bases"))
    if name is not None and not found:
        raise NotFoundError("unknown-base-of-service", base=name)
    return found


def _digest(base: str | None) -> Steps[str | None]:
    """Return a base's digest by its name; None for the default base. Raises NotFoundError."""
    if base is None or base.startswith("sha256:"):
        return base
    return (yield from bases(base))[0].read("digest", str)
