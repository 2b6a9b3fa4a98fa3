"""The gateway to the service of this environment: its database, queue and artifacts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cli.gateway import Document
from cli.output import say
from cli.waking import start_webhook_worker, start_worker, wake
from onboard.domain.job import JobState
from onboard.domain.names import require_name

if TYPE_CHECKING:
    from onboard.domain.submission import Submission
    from onboard.domain.task_search import TaskSearch
    from onboard.services import Services


class LocalGateway:
    """See `cli.gateway.Gateway`."""

    poll_seconds = 0.2

    def __init__(self, services: Services) -> None:
        self._services = services

    def submit(self, submission: Submission) -> Document:
        """Check a dataset and queue its job."""
        from onboard.bases import find_base
        from onboard.jobs.submission import prepare
        from onboard.jobs.submit import submit
        from workers.waking import doorbell

        if submission.base and "/" in submission.base:  # a worker has another present folder
            submission = replace(submission, base=str(find_base(submission.base).folder))
        request = prepare(submission, self._services.settings.base)
        for finding in request.checked.report.warnings:
            say(f"warning: {finding.message} {finding.remedy}")
        job, warning = submit(self._services, doorbell(self._services), request)
        if warning:
            say(f"warning: {warning}")
        start_worker(self._services, submission.queue)
        return {"job": job.id, "state": job.state.value, "task": job.spec.task}

    def progress(self, job: str, since: int) -> Document:
        """What is new about a job."""
        from onboard.jobs.control import news_of

        present, events = news_of(self._services.database, job, since)
        return {
            "job": present.id, "state": present.state.value, "queue": present.queue,
            "events": [event.to_json() for event in events],
        }  # fmt: skip

    def waiting(self, job: str) -> Document | None:
        """Why a job waits."""
        from onboard.jobs.control import find_job
        from onboard.jobs.status import waiting

        wait = waiting(self._services.database, find_job(self._services.database, job))
        return wait.to_json() if wait else None

    def keep_served(self, queue: str) -> None:
        """Start a worker on the embedded default: the one that was there may have been killed."""
        start_worker(self._services, queue)

    def log(self, job: str, attempt: int | None, cursor: str | None) -> Document:
        """A part of a job's log."""
        from onboard.jobs.logs import read_log
        from workers.logs import log_files

        return read_log(self._services.database, log_files(self._services.settings), job, attempt, cursor)

    def open_jobs(self, most: int) -> Document:
        """What runs and waits."""
        from onboard.jobs.status import open_jobs

        return open_jobs(self._services.database, most).to_json()

    def queues(self) -> Document:
        """Every queue."""
        from onboard.jobs.status import queues

        return queues(self._services.database).to_json()

    def workers(self) -> Document:
        """Every worker."""
        from onboard.jobs.status import workers

        return workers(self._services.database).to_json()

    def jobs(self, states: Sequence[str], task: str | None, limit: int) -> list[Document]:
        """The newest jobs."""
        from onboard.jobs.control import brief, newest_jobs

        of_states = [JobState(state) for state in states] or None
        return [brief(job) for job in newest_jobs(self._services.database, states=of_states, task=task, limit=limit)]

    def job(self, job: str) -> Document:
        """A job in full."""
        from onboard.jobs.control import find_job, full_document

        return full_document(self._services.database, find_job(self._services.database, job))

    def cancel(self, job: str) -> Document:
        """Cancel a job."""
        from onboard.jobs.control import brief, cancel

        return brief(cancel(self._services.database, job))

    def retry(self, job: str, time_limit_seconds: float | None) -> Document:
        """Queue a job again."""
        from onboard.jobs.control import brief, retry

        queued = retry(self._services.database, job, time_limit_seconds)
        wake(self._services, queued.queue)
        return brief(queued)

    def set_paused(self, queue: str, paused: bool) -> None:
        """Hold a queue's jobs back, or let them go on."""
        from onboard.jobs.control import set_paused

        set_paused(self._services.database, queue, paused)
        if not paused:
            wake(self._services, queue)

    def drain(self, worker: str) -> None:
        """Let a worker leave."""
        from onboard.jobs.control import drain

        drain(self._services.database, worker)

    def create_token(self, name: str | None, scopes: Sequence[str], expires: str) -> Document:
        """A new token with its secret."""
        from onboard.operations.access import create_token

        token, secret = create_token(self._services.database, name, scopes, expires)
        return {**token.to_json(), "secret": secret}

    def tokens(self, include_ended: bool) -> list[Document]:
        """The tokens."""
        from onboard.operations.access import list_tokens

        return [token.to_json() for token in list_tokens(self._services.database, include_ended=include_ended)]

    def revoke_token(self, token: str) -> Document:
        """End a token."""
        from onboard.operations.access import revoke_token

        return revoke_token(self._services.database, token).to_json()

    def changes(self, limit: int, before: int | None) -> Document:
        """The newest changes."""
        from onboard.operations.access import changes

        return changes(self._services.database, limit, before)

    def predict(self, inputs: Sequence[Mapping[str, Any]]) -> tuple[list[Document], bool]:
        """Answers, and whether one is of a weak version; an unknown version is told before a model is loaded."""
        from onboard.serving.requests import parse_requests
        from onboard.versions.describe import resolve

        requests = parse_requests(inputs)
        resolve(self._services.database, *{request.reference for request in requests})
        from onboard.serving.predictor import Predictor

        answers = Predictor(self._services).answer(requests)
        return [answer.to_json() for answer in answers], any(answer.weak for answer in answers)

    def tasks(self, search: TaskSearch) -> list[Document]:
        """The tasks that fit."""
        from onboard.versions.describe import list_tasks

        return list_tasks(self._services.database, search)

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
        from onboard.versions.describe import resolve

        (version,) = resolve(self._services.database, reference)
        return version.to_json()

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

        carried = carry(self._services, task, dry_run=dry_run, on_page=lambda page: on_page(page.to_json()))
        if any(outcome.version for outcome in carried.outcomes):
            start_webhook_worker(self._services)
        return carried.to_json()

    def fetch(self, reference: str, folder: Path, bundle: bool) -> Sequence[Path]:
        """Write a version's files."""
        from onboard.versions.fetch import fetch

        return fetch(self._services, reference, folder, bundle).files

    def hypernetworks(self, base: str | None) -> Document:
        """The line of a base."""
        from onboard.hypernetworks.line import list_hypernetworks

        return list_hypernetworks(self._services.database, self._named(base))

    def hypernetwork(self, version: int, base: str | None) -> Document:
        """One version."""
        from onboard.hypernetworks.line import show_hypernetwork

        return show_hypernetwork(self._services.database, self._named(base), version)

    def revert_hypernetwork(self, version: int, base: str | None) -> Document:
        """Make a version the head again."""
        from onboard.hypernetworks.line import revert_hypernetwork

        return revert_hypernetwork(self._services.database, self._named(base), version)

    def _named(self, base: str | None) -> str:
        """What the registry finds it by: the digest of the default base, which may have been registered by a folder."""
        from onboard.bases import find_base

        return base or find_base(self._services.settings.base).digest
