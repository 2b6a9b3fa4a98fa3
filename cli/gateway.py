"""What commands ask of a service: one interface, with two implementations.

`cli.local` is the service of this environment, `cli.remote` the one at ONBOARD_API_URL; `cli.connection` chooses.

Both answer with the documents that `--json` prints, and raise the same errors.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from onboard.domain.submission import Submission
    from onboard.domain.task_search import TaskSearch

Document = dict[str, Any]


class Versions(Protocol):
    """Tasks, their versions and aliases."""

    def tasks(self, search: TaskSearch) -> list[Document]:
        """The tasks that fit, by name, each with its latest version."""

    def tasks_map(self) -> Document:
        """Every task's latest embedding in two dimensions, see `task_map.map_tasks`. Raises DamagedError."""

    def task(self, task: str) -> Document:
        """A task with its latest version and its aliases. Raises NotFoundError."""

    def delete_task(self, task: str, unlearning: bool, dry_run: bool) -> Document:
        """Delete a task for good, and raise what `onboard.versions.delete.delete_task` raises."""

    def versions(self, task: str, limit: int, before: int | None) -> Document:
        """The newest `versions`, those before that number, and the `aliases`. Raises NotFoundError."""

    def version(self, reference: str) -> Document:
        """A version. Raises InputError, NotFoundError."""

    def compare(self, a: str, b: str) -> Document:
        """Two versions side by side. Raises InputError, NotFoundError, DamagedError."""

    def promote(self, reference: str, alias: str, if_better: bool) -> Document:
        """Let an alias mean a version. Raises InputError, NotFoundError, NotBetterError, PreconditionFailedError."""

    def rollback(self, task: str, alias: str) -> Document:
        """Let an alias mean what it meant before. Raises NotFoundError, ConflictError."""

    def carry(self, task: str | None, dry_run: bool, on_page: Callable[[Document], None]) -> Document:
        """Carry a task to the head, or with None all; then `on_page` hears of every few. Raises NotFoundError."""

    def fetch(self, reference: str, folder: Path, bundle: bool) -> Sequence[Path]:
        """Write a version's files; returns what was written. Raises as `onboard.versions.fetch.fetch`."""


class Heads(Protocol):
    """Hypernetworks; `base` is the name or digest of their base, None the service's default one."""

    def hypernetworks(self, base: str | None) -> Document:
        """The line of a base. Raises NotFoundError."""

    def hypernetwork(self, version: int, base: str | None) -> Document:
        """One version with what is pinned to it and the guard's verdict. Raises NotFoundError."""

    def revert_hypernetwork(self, version: int, base: str | None) -> Document:
        """Make a version the head again. Raises NotFoundError, ConflictError."""


class Gateway(Versions, Heads, Protocol):
    """A service, near or far."""

    poll_seconds: float
    """Between two looks at a job that is followed."""

    def submit(self, submission: Submission) -> Document:
        """Queue a job; warnings are said. Raises as `submission.prepare` and `submit`."""

    def progress(self, job: str, since: int) -> Document:
        """A job's `job`, `state`, `queue` and its `events` after `since`. Raises NotFoundError, UnavailableError."""

    def waiting(self, job: str) -> Document | None:
        """Why a job waits; None unless it is queued."""

    def keep_served(self, queue: str) -> None:
        """See to it that a worker lives, where that is for the command to do."""

    def log(self, job: str, attempt: int | None, cursor: str | None) -> Document:
        """A part of a job's log, see `onboard.jobs.logs.read_log`."""

    def open_jobs(self, most: int) -> Document:
        """What runs, and the `most` most urgent jobs that wait."""

    def queues(self) -> Document:
        """Every queue with its figures."""

    def workers(self) -> Document:
        """Every worker with what it does."""

    def jobs(self, states: Sequence[str], task: str | None, limit: int) -> list[Document]:
        """The newest jobs, of these states or of all."""

    def job(self, job: str) -> Document:
        """A job in full, by its id or its task. Raises NotFoundError."""

    def cancel(self, job: str) -> Document:
        """Cancel a job, by its id or its task. Raises NotFoundError, ConflictError."""

    def retry(self, job: str, time_limit_seconds: float | None) -> Document:
        """Queue a job again. Raises NotFoundError, ConflictError, InputError."""

    def set_paused(self, queue: str, paused: bool) -> None:
        """Hold a queue's jobs back, or let them go on. Raises InputError."""

    def drain(self, worker: str) -> None:
        """Let a worker leave. Raises NotFoundError."""

    def create_token(self, name: str | None, scopes: Sequence[str], expires: str) -> Document:
        """A new token with its `secret`. Raises InputError."""

    def tokens(self, include_ended: bool) -> list[Document]:
        """The tokens that work now, or all of them."""

    def revoke_token(self, token: str) -> Document:
        """End a token, by its id or its name. Raises NotFoundError, ConflictError."""

    def changes(self, limit: int, before: int | None) -> Document:
        """The newest `changes`, those before that id; `next` is the id to go on before, None at the end."""

    def predict(self, inputs: Sequence[Mapping[str, Any]]) -> tuple[list[Document], bool]:
        """Answers in the order of the inputs, and whether a version that answered is weak.

        Raises:
            InputError, NotFoundError, PinMismatchError: nothing is answered.
        """
