"""What those who run a remote service want of it: its queues, workers, logs and tokens, and whether it is there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from onboard.client.asking import Asking
from onboard.client.document import Document
from onboard.client.problems import job_in_commands
from onboard.domain.access import read_scopes, sorted_scopes
from onboard.domain.job import JobState


class Operations(Asking):
    """Documents are those that the command of the same name prints with --json."""

    def require_alive(self) -> None:
        """Raise UnavailableError unless the service responds."""
        self.get("/healthz")

    def require_ready(self) -> None:
        """Raise UnavailableError unless the service and its database respond."""
        self.get("/readyz")

    def job_documents(
        self, states: Sequence[str] = (), task: str | None = None, limit: int = 50, sort: str = "newest"
    ) -> list[Document]:
        """Jobs in these states or in all, newest first or in the order of `sort`."""
        asked = None if sort == "newest" else sort  # a service of an earlier release knows this one only
        pages = self.pages("/v1/jobs", "jobs", limit, state=list(states) or None, task=task, sort=asked)
        return [job_in_commands(job) for page in pages for job in page.parts("jobs")]

    def log(self, job: str, attempt: int | None = None, cursor: str | None = None) -> dict[str, Any]:
        """A page of the worker log of a job; `next` is the cursor of the following page. Needs the scope ops."""
        part = self.get(f"/v1/jobs/{quote(job, safe='')}/logs", attempt=attempt, cursor=cursor)
        part.read("state", JobState)  # whoever follows a log goes on until it has ended
        return job_in_commands(part)

    def open_jobs(self, most: int) -> dict[str, Any]:
        """Running jobs, and the `most` most urgent waiting ones."""
        return self.get("/v1/queue/jobs", limit=most)

    def queues(self) -> dict[str, Any]:
        """All queues with their statistics."""
        return self.get("/v1/queue")

    def set_paused(self, queue: str, paused: bool) -> str | None:
        """Pause or resume a queue. Needs the scope ops.

        Returns:
            A warning where nobody could be told of it at once.
        """
        answer = self.send("POST", f"/v1/queue/{'pause' if paused else 'resume'}", {"queue": queue})
        return answer.given("warning", str)

    def workers(self) -> dict[str, Any]:
        """All workers with their current jobs."""
        return self.get("/v1/workers")

    def drain(self, worker: str) -> None:
        """Let a worker finish its job and exit. Needs the scope ops. Raises NotFoundError."""
        self.send("POST", f"/v1/workers/{quote(worker, safe='')}/drain")

    def create_token(self, name: str | None, scopes: str | Sequence[str], expires: str) -> dict[str, Any]:
        """Create a token; the result has its `secret`. Needs the scope admin.

        Args:
            scopes: of it; one text may hold several with commas between.
            expires: "90d", "never", ….

        Raises:
            InputError: a scope or the time is none.
        """
        body = {
            "name": name,
            "scopes": sorted_scopes(read_scopes([scopes] if isinstance(scopes, str) else scopes)),
            "expires": expires,
        }
        return self.send("POST", "/v1/tokens", body)

    def tokens(self, include_ended: bool = False) -> list[Document]:
        """Valid tokens, or all. Needs the scope admin."""
        return list(self.get("/v1/tokens", all=include_ended).parts("tokens"))

    def revoke_token(self, token: str) -> dict[str, Any]:
        """Revoke a token by id or name. Needs the scope admin. Raises NotFoundError, ConflictError."""
        return self.send("DELETE", f"/v1/tokens/{quote(token, safe='')}")

    def sessions(self) -> list[Document]:
        """Signed-in browsers. Needs the scope admin."""
        return list(self.get("/v1/sessions").parts("sessions"))

    def end_session(self, session: str) -> dict[str, Any]:
        """End a browser session by its id. Needs the scope admin. Raises NotFoundError."""
        return self.send("DELETE", f"/v1/sessions/{quote(session, safe='')}")

    def changes(self, limit: int, before: int | None = None) -> dict[str, Any]:
        """A page of the audit log, newest first, before an id; `next` is the id for the following page."""
        pages = list(self.pages("/v1/audit", "changes", limit, cursor=None if before is None else str(before)))
        return {"changes": [change for page in pages for change in page.parts("changes")], "next": pages[-1]["next"]}
