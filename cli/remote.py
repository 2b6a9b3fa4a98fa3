"""The gateway to the service at ONBOARD_API_URL."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from cli.gateway import Document
from cli.output import say
from cli.remote_heads import RemoteHeads
from cli.remote_versions import RemoteVersions
from onboard.client.uploads import DatasetOptions, JobOptions
from onboard.domain.access import read_scopes, sorted_scopes
from onboard.domain.limits import MAX_PAGE
from onboard.errors import NotFoundError

if TYPE_CHECKING:
    from onboard.client import Onboard
    from onboard.jobs.submission import Order

_NO_EVENTS: Final = 2**53 - 1  # events after this one: none


def check(client: Onboard, order: Order) -> Document:
    """What a service says of a dataset."""
    report = client.check(
        order.dataset, order.task, validation=order.validation, test=order.test, unlabelled=order.unlabelled,
        **_options(order, DatasetOptions.__optional_keys__),
    )  # fmt: skip
    return {**report, "source": order.dataset}  # the service knows the name of the file only


def _options(order: Order, known: Iterable[str]) -> dict[str, Any]:
    """What the order wants beyond the defaults: a service of an earlier version may not know every field."""
    plain = type(order)(order.dataset)
    wanted = {name: getattr(order, name) for name in known}
    return {name: value for name, value in wanted.items() if value != getattr(plain, name)}


class RemoteGateway(RemoteVersions, RemoteHeads):
    """See `cli.gateway.Gateway`."""

    poll_seconds = 1.0

    def submit(self, order: Order) -> Document:
        """Upload a dataset, to be checked and queued."""
        job = self._client.submit(
            order.dataset, order.task, validation=order.validation, test=order.test, unlabelled=order.unlabelled,
            key=order.key, **_options(order, JobOptions.__optional_keys__),
        ).document  # fmt: skip
        for finding in job["warnings"]:
            say(f"warning: {finding['message']} {finding['remedy']}")
        if job["warning"]:
            say(f"warning: {job['warning']}")
        return {"job": job["job"], "state": job["state"], "task": job["task"]}

    def progress(self, job: str, since: int) -> Document:
        """What is new about a job, and why it waits."""
        return self._client.get(f"/v1/jobs/{quote(job, safe='')}", since=since)

    def waiting(self, job: str) -> Document | None:
        """Why a job waits."""
        wait: Document | None = self._client.get(f"/v1/jobs/{quote(job, safe='')}", since=_NO_EVENTS)["waiting"]
        return wait

    def keep_served(self, queue: str) -> None:
        """The service sees to its workers."""

    def log(self, job: str, attempt: int | None, cursor: str | None) -> Document:
        """A part of a job's log."""
        return self._client.get(f"/v1/jobs/{quote(job, safe='')}/logs", attempt=attempt, cursor=cursor)

    def open_jobs(self, most: int) -> Document:
        """What runs and waits."""
        return self._client.get("/v1/queue/jobs", limit=most)

    def queues(self) -> Document:
        """Every queue."""
        return self._client.get("/v1/queue")

    def workers(self) -> Document:
        """Every worker."""
        return self._client.get("/v1/workers")

    def jobs(self, states: Sequence[str], task: str | None, limit: int) -> list[Document]:
        """The newest jobs, page by page."""
        found: list[Document] = []
        cursor = None
        while len(found) < limit:
            size = min(limit - len(found), MAX_PAGE)
            page = self._client.get("/v1/jobs", state=list(states) or None, task=task, limit=size, cursor=cursor)
            found += page["jobs"]
            cursor = page["next"]
            if cursor is None:
                break
        return found

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
        answer = self._client.send("POST", f"/v1/queue/{'pause' if paused else 'resume'}", {"queue": queue})
        if answer.get("warning"):
            say(f"warning: {answer['warning']}")

    def drain(self, worker: str) -> None:
        """Let a worker leave."""
        self._client.send("POST", f"/v1/workers/{quote(worker, safe='')}/drain")

    def create_token(self, name: str | None, scopes: Sequence[str], expires: str) -> Document:
        """A new token with its secret."""
        wanted = read_scopes(scopes)  # also several with commas between
        return self._client.send(
            "POST", "/v1/tokens", {"name": name, "scopes": sorted_scopes(wanted), "expires": expires}
        )

    def tokens(self, include_ended: bool) -> list[Document]:
        """The tokens."""
        return list(self._client.get("/v1/tokens", all=include_ended)["tokens"])

    def revoke_token(self, token: str) -> Document:
        """End a token."""
        return self._client.send("DELETE", f"/v1/tokens/{quote(token, safe='')}")

    def changes(self, limit: int, before: int | None) -> Document:
        """The newest changes, page by page."""
        found: list[Document] = []
        cursor = None if before is None else str(before)
        while True:
            page = self._client.get("/v1/audit", limit=min(limit - len(found), MAX_PAGE), cursor=cursor)
            found += page["changes"]
            cursor = page["next"]
            if cursor is None or len(found) >= limit:
                return {"changes": found, "next": cursor}

    def predict(self, inputs: Sequence[Mapping[str, Any]]) -> tuple[list[Document], bool]:
        """Answers in the order of the inputs, and whether one is of a weak version."""
        answers = [asdict(each) for each in self._client.predict(inputs)]
        versions = {(each["task"], each["version"]) for each in answers}
        weak = False
        for task, number in versions:
            with suppress(NotFoundError):  # it was deleted after it had answered
                weak |= self._client.get(f"/v1/tasks/{task}/embeddings/v{number}")["weak"]
        return answers, weak
