"""The gateway to the service of this environment: its database, queue and artifacts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from cli.gateway import Document
from cli.local_heads import LocalHeads
from cli.local_versions import LocalVersions
from cli.output import say
from cli.waking import start_worker, wake
from onboard.domain.job import JobState

if TYPE_CHECKING:
    from onboard.jobs.submission import Order


class LocalGateway(LocalVersions, LocalHeads):
    """See `cli.gateway.Gateway`."""

    poll_seconds = 0.2

    def submit(self, order: Order) -> Document:
        """Check a dataset and queue its job."""
        from onboard.bases import find_base
        from onboard.jobs.submission import prepare
        from onboard.jobs.submit import submit
        from workers.waking import doorbell

        if "/" in order.base:  # a worker has another present folder
            order = replace(order, base=str(find_base(order.base).folder))
        request = prepare(order, self._services.settings.base)
        for finding in request.checked.report.warnings:
            say(f"warning: {finding.message} {finding.remedy}")
        job, warning = submit(self._services, doorbell(self._services), request)
        if warning:
            say(f"warning: {warning}")
        start_worker(self._services, order.queue)
        return {"job": job.id, "state": job.state.value, "task": job.spec.task}

    def progress(self, job: str, since: int) -> Document:
        """What is new about a job."""
        from onboard.registry.events import EventRepository
        from onboard.registry.jobs import JobRepository

        with self._services.database.read() as session:
            # looked at first: what it did before it ended is read after that
            found = JobRepository(session).get(job)
            events = EventRepository(session).list(job, since)
        return {
            "job": found.id, "state": found.state.value, "queue": found.queue,
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
        from onboard.jobs.control import brief
        from onboard.registry.jobs import JobRepository

        wanted = [JobState(each) for each in states] or None
        with self._services.database.read() as session:
            return [brief(job) for job in JobRepository(session).list(states=wanted, task=task, limit=limit)]

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
        from onboard.registry.workers import QueueRepository

        with self._services.database.write() as session:
            QueueRepository(session).set_paused(queue, paused)
        if not paused:
            wake(self._services, queue)

    def drain(self, worker: str) -> None:
        """Let a worker leave."""
        from onboard.registry.workers import WorkerRepository

        with self._services.database.write() as session:
            WorkerRepository(session).drain(worker)

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
        from onboard.registry.versions import VersionRepository
        from onboard.serving.requests import parse_requests

        requests = parse_requests(inputs)
        with self._services.database.read() as session:
            versions = VersionRepository(session)
            for reference in {request.reference for request in requests}:
                versions.resolve(reference)
        from onboard.serving.predictor import Predictor

        answers = Predictor(self._services).answer(requests)
        return [answer.to_json() for answer in answers], any(answer.weak for answer in answers)
