"""Operator's requests to a remote service: queues, workers, logs, tokens and health."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from urllib.parse import quote

from onboard.client.asking import Asking, get, pages, send
from onboard.client.json_object import JsonObject
from onboard.client.problems import job_in_commands
from onboard.client.steps import Steps, operation
from onboard.domain.access import read_scopes, sorted_scopes
from onboard.domain.job import JobState


class Operations(Asking):
    """Documents are those that the command of the same name prints with --json."""

    @operation
    def require_alive(self) -> Steps[None]:
        """Raise UnavailableError unless the service responds."""
        yield from get("/healthz")

    @operation
    def require_ready(self) -> Steps[None]:
        """Raise UnavailableError unless the service and its database respond."""
        yield from get("/readyz")

    @operation
    def job_documents(
        self, states: Sequence[str] = (), task: str | None = None, limit: int = 50, sort: str = "newest"
    ) -> Steps[list[JsonObject]]:
        """Return jobs in these states or in all, newest first or in the order of `sort`."""
        return job_documents(states, task, limit, sort)

    @operation
    def log(self, job: str, attempt: int | None = None, cursor: str | None = None) -> Steps[JsonObject]:
        """Return a page of the worker log of a job; `next` is the cursor of the following page. Needs the scope ops."""
        part = yield from get(f"/v1/jobs/{quote(job, safe='')}/logs", attempt=attempt, cursor=cursor)
        part.read("state", JobState)  # validates the state, which callers that follow a log need
        return job_in_commands(part)

    @operation
    def open_jobs(self, most: int) -> Steps[JsonObject]:
        """Return running jobs, and the `most` most urgent waiting ones."""
        return get("/v1/queue/jobs", limit=most)

    @operation
    def queues(self) -> Steps[JsonObject]:
        """Return all queues with their statistics."""
        return get("/v1/queue")

    @operation
    def set_paused(self, queue: str, paused: bool) -> Steps[str | None]:
        """Pause or resume a queue. Needs the scope ops.

        Returns:
            A warning if workers could not be notified at once.
        """
        answer = yield from send("POST", f"/v1/queue/{'pause' if paused else 'resume'}", {"queue": queue})
        return answer.given("warning", str)

    @operation
    def workers(self) -> Steps[JsonObject]:
        """Return all workers with their current jobs."""
        return get("/v1/workers")

    @operation
    def drain(self, worker: str) -> Steps[None]:
        """Let a worker finish its job and exit. Needs the scope ops. Raises NotFoundError."""
        yield from send("POST", f"/v1/workers/{quote(worker, safe='')}/drain")

    @operation
    def create_token(
        self,
        name: str | None,
        scopes: str | Sequence[str],
        expires: str,
        *,
        max_jobs: int | None = None,
        max_bytes: int | None = None,
    ) -> Steps[JsonObject]:
        """Create a token; the result contains its `secret`. Needs the scope admin.

        Args:
            name: of the token; None names it after its scopes.
            scopes: of the token; one text may contain several, separated by commas.
            expires: "90d", "never", ….
            max_jobs: limit of queued and running jobs of all tokens of this name; None leaves it as it is.
            max_bytes: limit of their stored bytes, likewise.

        Raises:
            InputError: a scope, the lifetime or a limit is invalid.
        """
        limits = {"max_jobs": max_jobs, "max_bytes": max_bytes}
        body = {
            "name": name,
            "scopes": sorted_scopes(read_scopes([scopes] if isinstance(scopes, str) else scopes)),
            "expires": expires,
            **{field: limit for field, limit in limits.items() if limit is not None},
        }
        return send("POST", "/v1/tokens", body)

    @operation
    def set_quota(self, owner: str, limits: Mapping[str, int | None]) -> Steps[JsonObject]:
        """Change limits of all tokens of a name. Needs the scope admin.

        Args:
            owner: the name.
            limits: `max_jobs`, `max_bytes`, or both; None lifts a limit.

        Returns:
            The limits and what is used of them.

        Raises:
            InputError: a limit is invalid, or none is given.
            NotFoundError: no valid token has that name.
        """
        return send("PATCH", f"/v1/quotas/{quote(owner, safe='')}", dict(limits))

    @operation
    def tokens(self, include_ended: bool = False) -> Steps[list[JsonObject]]:
        """Return valid tokens, or all. Needs the scope admin."""
        return list((yield from get("/v1/tokens", all=include_ended)).parts("tokens"))

    @operation
    def revoke_token(self, token: str) -> Steps[JsonObject]:
        """Revoke a token by id or name. Needs the scope admin. Raises NotFoundError, ConflictError."""
        return send("DELETE", f"/v1/tokens/{quote(token, safe='')}")

    @operation
    def sessions(self) -> Steps[list[JsonObject]]:
        """Return signed-in browsers. Needs the scope admin."""
        return list((yield from get("/v1/sessions")).parts("sessions"))

    @operation
    def end_session(self, session: str) -> Steps[JsonObject]:
        """End a browser session by its id. Needs the scope admin. Raises NotFoundError."""
        return send("DELETE", f"/v1/sessions/{quote(session, safe='')}")

    @operation
    def changes(self, limit: int, before: int | None = None) -> Steps[JsonObject]:
        """Return a page of the audit log, newest first, before an id; `next` is the id for the following page."""
        cursor = None if before is None else str(before)
        fetched = yield from pages("/v1/audit", "changes", limit, cursor=cursor)
        changes = [change for page in fetched for change in page.parts("changes")]
        return JsonObject.of({"changes": changes, "next": fetched[-1]["next"]}, fetched[-1].place)


def job_documents(states: Sequence[str], task: str | None, limit: int, sort: str) -> Steps[list[JsonObject]]:
    """See `Operations.job_documents`."""
    order = None if sort == "newest" else sort  # services of earlier releases only support this order
    found = yield from pages("/v1/jobs", "jobs", limit, state=list(states) or None, task=task, sort=order)
    return [job_in_commands(job) for page in found for job in page.parts("jobs")]
