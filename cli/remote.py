"""The gateway to the service at ONBOARD_API_URL."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from cli.gateway import Document
from cli.output import say
from onboard.domain.names import Reference
from onboard.domain.submission import asked
from onboard.errors import NotFoundError

if TYPE_CHECKING:
    from onboard.client import Onboard
    from onboard.domain.submission import Submission
    from onboard.domain.task_search import TaskSearch

_NO_EVENTS: Final = 2**53 - 1  # events after this one: none


def check(client: Onboard, submission: Submission) -> Document:
    """What a service says of a dataset."""
    report = client.check(**asked(submission))
    return {**report, "source": submission.dataset}  # the service knows the name of the file only


class RemoteGateway:
    """See `cli.gateway.Gateway`."""

    poll_seconds = 1.0

    def __init__(self, client: Onboard) -> None:
        self._client = client

    def submit(self, submission: Submission) -> Document:
        """Upload a dataset, to be checked and queued."""
        job = self._client.submit(**asked(submission)).document
        for finding in job["warnings"]:
            say(f"warning: {finding['message']} {finding['remedy']}")
        if job["warning"]:
            say(f"warning: {job['warning']}")
        return {"job": job["job"], "state": job["state"], "task": job["task"]}

    def progress(self, job: str, since: int) -> Document:
        """What is new about a job, and why it waits."""
        return dict(self._client.job(job, since).document)

    def waiting(self, job: str) -> Document | None:
        """Why a job waits."""
        wait: Document | None = self._client.job(job, _NO_EVENTS).document["waiting"]
        return wait

    def keep_served(self, queue: str) -> None:
        """The service sees to its workers."""

    def log(self, job: str, attempt: int | None, cursor: str | None) -> Document:
        """A part of a job's log."""
        return self._client.log(job, attempt, cursor)

    def open_jobs(self, most: int) -> Document:
        """What runs and waits."""
        return self._client.open_jobs(most)

    def queues(self) -> Document:
        """Every queue."""
        return self._client.queues()

    def workers(self) -> Document:
        """Every worker."""
        return self._client.workers()

    def jobs(self, states: Sequence[str], task: str | None, limit: int) -> list[Document]:
        """The newest jobs."""
        return self._client.jobs(states, task, limit)

    def job(self, job: str) -> Document:
        """A job in full."""
        return dict(self._client.job(job).document)

    def cancel(self, job: str) -> Document:
        """Cancel a job."""
        return dict(self._client.cancel(job).document)

    def retry(self, job: str, time_limit_seconds: float | None) -> Document:
        """Queue a job again."""
        return dict(self._client.retry(job, time_limit_seconds).document)

    def set_paused(self, queue: str, paused: bool) -> None:
        """Hold a queue's jobs back, or let them go on."""
        warning = self._client.set_paused(queue, paused)
        if warning:
            say(f"warning: {warning}")

    def drain(self, worker: str) -> None:
        """Let a worker leave."""
        self._client.drain(worker)

    def create_token(self, name: str | None, scopes: Sequence[str], expires: str) -> Document:
        """A new token with its secret."""
        return self._client.create_token(name, scopes, expires)

    def tokens(self, include_ended: bool) -> list[Document]:
        """The tokens."""
        return self._client.tokens(include_ended)

    def revoke_token(self, token: str) -> Document:
        """End a token."""
        return self._client.revoke_token(token)

    def changes(self, limit: int, before: int | None) -> Document:
        """The newest changes."""
        return self._client.changes(limit, before)

    def predict(self, inputs: Sequence[Mapping[str, Any]]) -> tuple[list[Document], bool]:
        """Answers in the order of the inputs, and whether one is of a weak version."""
        predictions = self._client.predict(inputs)
        weak = False
        for reference in {f"{prediction.task}@v{prediction.version}" for prediction in predictions}:
            with suppress(NotFoundError):  # it was deleted after it had answered
                weak |= self.version(reference)["weak"]
        return [asdict(prediction) for prediction in predictions], weak

    def tasks(self, search: TaskSearch) -> list[Document]:
        """The tasks that fit."""
        return self._client.tasks(search)

    def tasks_map(self) -> Document:
        """Every task's latest embedding in two dimensions, laid out here: the service has told all numbers."""
        from onboard.versions.task_map import Embedded, map_tasks

        return map_tasks([Embedded.from_document(document) for document in self._client.numbers()])

    def task(self, task: str) -> Document:
        """A task."""
        return self._client.task(task)

    def delete_task(self, task: str, unlearning: bool, dry_run: bool) -> Document:
        """Delete a task for good."""
        return self._client.delete_task(task, unlearn=unlearning, dry_run=dry_run)

    def versions(self, task: str, limit: int, before: int | None) -> Document:
        """The newest versions."""
        return self._client.versions(task, limit, before)

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

    def hypernetworks(self, base: str | None) -> Document:
        """The line of a base."""
        return self._client.hypernetworks(base)

    def hypernetwork(self, version: int, base: str | None) -> Document:
        """One version."""
        return self._client.hypernetwork_version(version, base)

    def revert_hypernetwork(self, version: int, base: str | None) -> Document:
        """Make a version the head again."""
        return self._client.revert_hypernetwork(version, base)
