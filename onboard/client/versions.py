"""What a program wants of a remote service with tasks and versions: list, release, delete, take."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from onboard.client.aliases import Aliases
from onboard.client.answers import Pins
from onboard.client.asking import Asking
from onboard.client.bases import download_base, download_hypernetwork, download_readout, download_weights
from onboard.client.connection import PATIENCE_SECONDS
from onboard.client.document import Document
from onboard.contract.drift import DriftDocument
from onboard.contract.versions import AliasMoveDocument
from onboard.domain.methods import content_of
from onboard.domain.names import Reference, require_alias, require_name
from onboard.domain.task import AliasNames
from onboard.errors import NotFoundError, UnavailableError

if TYPE_CHECKING:
    from onboard.domain.label_change import LabelChange
    from onboard.domain.prior import Form
    from onboard.domain.task_search import TaskSearch


class Versions(Asking):
    """Tasks, their versions, the names that they have, and what they are pinned to."""

    def task_documents(self, search: TaskSearch) -> list[Document]:
        """Matching tasks by name, with their latest versions."""
        pages = self.pages("/v1/tasks", "tasks", **asdict(search))
        return [task for page in pages for task in page.parts("tasks")]

    def task_document(self, task: str) -> Document:
        """A task with its latest version and aliases. Raises NotFoundError."""
        return self.get(f"/v1/tasks/{require_name(task)}")

    def versions_page(self, task: str, limit: int, before: int | None = None) -> Document:
        """A page of `versions`, newest first, before a number, and the `aliases`. Raises NotFoundError."""
        path, cursor = f"/v1/tasks/{require_name(task)}/versions", None if before is None else str(before)
        pages = list(self.pages(path, "versions", limit, cursor=cursor))
        # a page is in the order of the numbers, and the newest page comes first
        versions = [version for page in reversed(pages) for version in page.parts("versions")]
        return Document.of({**pages[-1], "versions": versions}, pages[-1].place)

    def alias_names(self, reference: str) -> AliasNames:
        """The label names of a reference's alias, if they differ from the version's."""
        named = Reference.parse(reference)
        if named.alias is None:
            return ()
        names: AliasNames | None = self.get(f"/v1/tasks/{named.task}/aliases/{named.alias}").given("names", list)
        return names or ()

    def map_document(self) -> Document:
        """The map of tasks, as printed by `onboard tasks map --json`. Raises AnswerError."""
        document = self.get("/map.json")
        for task in document.parts("tasks"):
            task.read("task", str), task.read("x", float), task.read("y", float)
        return document

    def promote(
        self, reference: str, alias: str, *, if_better: bool = False, as_before: bool = False
    ) -> AliasMoveDocument:
        """Move an alias to TASK@vN, or to the version of another alias. Never overwrites a concurrent move.

        Args:
            if_better: only when it is significantly better than what the alias means now.
            as_before: answer those who ask the alias with the labels that they know, where labels were renamed since.

        Raises:
            NotFoundError: no such version.
            NotBetterError: it is not better.
            PreconditionFailedError: somebody else moved the alias just now.
        """
        asked, name = Reference.parse(reference), require_alias(alias)
        version = asked.version or self.version_document(asked).read("version", int)
        return Aliases(self._connection, asked.task).promote(name, version, if_better=if_better, as_before=as_before)

    def rollback(self, task: str, alias: str) -> AliasMoveDocument:
        """Move an alias to its previous version. Repeat to go further back.

        Raises:
            NotFoundError: no such alias.
            ConflictError: nothing came before.
            PreconditionFailedError: somebody else moved it just now.
        """
        return Aliases(self._connection, require_name(task)).rollback(require_alias(alias))

    def drift(self, reference: str) -> DriftDocument:
        """How a version's texts of the newest week differ from its training rows and from the week before.

        Args:
            reference: TASK[@latest|@vN|@ALIAS].

        Raises:
            NotFoundError: there is no such task or version.
        """
        named = Reference.parse(reference)
        return self.get(f"/v1/tasks/{named.task}/drift?{urlencode({'ref': named.ref})}").parsed(DriftDocument)

    def labels_document(self, task: str) -> Document:
        """The labels of a task's newest rows, as `onboard labels TASK --json` prints them. Raises NotFoundError."""
        return self.get(f"/v1/tasks/{require_name(task)}/labels")

    def change_labels(self, task: str, asked: LabelChange, *, fast: bool = False) -> Document:
        """Change labels, like `onboard labels TASK rename A B --json`. Raises the same errors as the command."""
        body: dict[str, Any] = {"action": asked.action, "labels": list(asked.labels)}
        body |= {} if asked.to is None else {"to": asked.to}
        body |= {} if asked.description is None else {"description": asked.description}
        body |= {"fast": True} if fast else {}
        return self.send("POST", f"/v1/tasks/{require_name(task)}/labels", body, timeout_seconds=PATIENCE_SECONDS)

    def delete_task(self, task: str, *, unlearn: bool = False, dry_run: bool = False) -> dict[str, Any]:
        """Delete a task permanently; returns the output of `onboard tasks delete --json`. Needs the scope admin.

        Args:
            unlearn: rebuild what descends from it, from its own rows.
            dry_run: only say what would go, and what descends from it.

        Raises:
            NotFoundError: no such task.
            ConflictError: it cannot be unlearned, or the service is at other maintenance.
            StorageError: the task is deleted, but not all of its files.
            UnavailableError: the service cannot be reached, or cannot delete for good.
        """
        options = urlencode({name: "true" for name, asked in (("unlearn", unlearn), ("dry_run", dry_run)) if asked})
        path = f"/v1/tasks/{require_name(task)}{'?' if options else ''}{options}"
        document = self.send("DELETE", path, timeout_seconds=PATIENCE_SECONDS)
        if not document:
            raise UnavailableError("task-only-hidden", task=task)
        return document

    def version_document(self, reference: str | Reference) -> Document:
        """A version without its numbers, as printed by `onboard versions --json`. Raises NotFoundError."""
        asked = Reference.parse(reference) if isinstance(reference, str) else reference
        document = self.get(f"/v1/tasks/{asked.task}/embeddings/{asked.ref}")
        document.pop("z", None)
        return document

    def readout(self, reference: str | Reference) -> bytes:
        """The verified file of a version's readout, `readout.safetensors`.

        Raises:
            NotFoundError: no such version, or it has none.
            DamagedError: what came is another file.
        """
        document = self.version_document(reference)
        asked = Reference(document.read("task", str), None, document.read("version", int))
        promised = document.given("readout", str)
        if promised is None:
            raise NotFoundError("version-without-readout", version=asked, task=asked.task)
        return download_readout(self._connection, asked, promised)

    def weights(self, reference: str | Reference) -> bytes:
        """The verified file of a version without an embedding, `weights.safetensors`.

        Raises:
            InputError: the version is of a method that this release does not know.
            NotFoundError: no such version, or it is an embedding.
            DamagedError: what came is another file.
        """
        document = self.version_document(reference)
        asked = Reference(document.read("task", str), None, document.read("version", int))
        method = document.read("method", str)
        if content_of(method, str(asked)) == "embedding":
            raise NotFoundError("version-without-weights", asked=str(asked))
        return download_weights(self._connection, asked, document.read("artifact", str))

    def hypernetworks(self, base: str | None = None) -> Document:
        """The hypernetworks of a base, given by name or digest; None means the default base. Raises NotFoundError."""
        return self.get("/v1/hypernetworks", base=self._digest(base))

    def hypernetwork_version(self, version: int, base: str | None = None) -> Document:
        """A hypernetwork with the versions pinned to it and the guard's verdict. Raises NotFoundError."""
        return self.get(f"/v1/hypernetworks/{version}", base=self._digest(base))

    def revert_hypernetwork(self, version: int, base: str | None = None) -> Document:
        """Make a hypernetwork the head again. Needs the scope ops. Raises NotFoundError, ConflictError."""
        digest = self._digest(base)
        return self.send("POST", f"/v1/hypernetworks/{version}/revert{f'?base={digest}' if digest else ''}")

    def priors(self, base: str | None = None) -> Document:
        """The priors of a base, and the contributions of earlier tasks. Raises NotFoundError."""
        return self.get("/v1/priors", base=self._digest(base))

    def prior(self, form: Form = "single", version: int | None = None, base: str | None = None) -> Document:
        """A prior (None means the head) with the tasks that taught it. Raises NotFoundError."""
        return self.get(f"/v1/priors/{form}", version=version, base=self._digest(base))

    def bases(self, name: str | None = None) -> list[Document]:
        """Available bases, or the one with this name. Raises NotFoundError."""
        bases = list(self.get("/v1/bases", name=name).parts("bases"))
        if name is not None and not bases:
            raise NotFoundError("unknown-base-of-service", base=name)
        return bases

    def base_card(self, digest: str) -> str:
        """The card of a base as Markdown. Raises NotFoundError, also if the service has never used the base."""
        return self.text(f"/v1/bases/{digest}/card.md")

    def _digest(self, base: str | None) -> str | None:
        """A base's digest by its name; a service's default base needs none. Raises NotFoundError."""
        if base is None or base.startswith("sha256:"):
            return base
        return self.bases(base)[0].read("digest", str)

    def base(self, digest: str, folder: str | Path) -> Path:
        """Download and verify the files of a base. With an embedding, they suffice for predictions.

        An embedding that is pinned to a later hypernetwork than the base's first needs that, too: see `hypernetwork`.

        Args:
            folder: a new one, or one that holds this base already.

        Raises:
            NotFoundError: the service has not got it.
            ConflictError: the folder holds something else.
            DamagedError: what came is not the base.
        """
        return download_base(self._connection, digest, Path(folder))

    def hypernetwork(self, pins: Pins, path: str | Path) -> Path:
        """Download and verify the hypernetwork that an embedding is pinned to. The first one is also part of the base.

        Args:
            pins: of the embedding: `embedding.pins`.
            path: of the file; beside `embedding.safetensors` and `base/` a bundle has it as
                `hypernetwork.safetensors`.

        Raises:
            NotFoundError: the service has not got it.
            DamagedError: what came is another file.
        """
        return download_hypernetwork(self._connection, pins, Path(path))
