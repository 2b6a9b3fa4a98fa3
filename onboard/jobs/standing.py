"""The current state of a task: the dataset of its newest version, including queued jobs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, TypeVar

from onboard.bases import find_base
from onboard.contract.changes import TaskChange
from onboard.data.snapshot import load
from onboard.domain.dataset import label_text
from onboard.domain.job import Job, JobSpec
from onboard.domain.names import require_name
from onboard.domain.task import EmbeddingVersion, Task
from onboard.errors import ConflictError, NotFoundError
from onboard.registry.jobs import JobRepository
from onboard.registry.tasks import TaskRepository
from onboard.registry.versions import VersionRepository
from onboard.versions.trained_rows import read_snapshot

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlalchemy.orm import Session

    from onboard.domain.change import ChangeAction
    from onboard.domain.dataset import Dataset, Label
    from onboard.registry.services import Services

LABELS_CHANGED: Final = "relabeled"  # kind of a version with renamed labels, which is made without a job
MOST_RENAMINGS: Final = 200  # since the last job


MOST_TRIES: Final = 20  # while the same task keeps changing
T = TypeVar("T")


class MovedOnError(Exception):
    """The task has changed since it was read; nothing was stored."""


@dataclass(frozen=True)
class Standing:
    """The current state of a task.

    Args:
        spec: spec of its last submission, with the current dataset.
        job: its newest queued, running or succeeded job; None if no job here learned it.
        version: the newest published version; None before the first.
        present: the published task with its label set; None before the first version.
    """

    task: str
    spec: JobSpec
    job: Job | None
    version: EmbeddingVersion | None
    present: Task | None

    @property
    def digest(self) -> str:
        """Digest of the current dataset."""
        return self.spec.dataset

    @property
    def is_open(self) -> bool:
        """Whether a job of the task is queued or running."""
        return self.job is not None and not self.job.state.finished

    def dataset(self, services: Services) -> Dataset:
        """Read its rows. Raises DamagedError, NotFoundError: they are missing."""
        return load(read_snapshot(services, self.digest))

    def change(self, action: ChangeAction, **more: Any) -> TaskChange:
        """Return the record of a change of this task."""
        version = None if self.version is None or self.is_open else self.version.version
        job = None if self.job is None else self.job.id
        return TaskChange(action=action, job=job, version=version, dataset=self.digest, **more)

    def require_unchanged(self, session: Session) -> None:
        """Lock the task in a writing transaction. Raises MovedOnError if its state has changed.

        Raises:
            NotFoundError: it was deleted meanwhile.
        """
        now = _found(session, self.task, hold=True)
        if (now.digest, now.job and now.job.id) != (self.digest, self.job and self.job.id):
            raise MovedOnError

    def require_present_base(self) -> None:
        """Raise ConflictError if this service uses another base than the task was learned on."""
        pinned = self.spec.options.get("base_digest") or (self.version and self.version.base_digest)
        base = find_base(self.spec.base)
        if pinned and base.digest != pinned:
            raise ConflictError(
                "task-of-other-base", task=self.task, pinned=pinned, base=self.spec.base, digest=base.digest
            )


def until_unmoved(task: str, attempt: Callable[[], T]) -> T:
    """Repeat an attempt until the task does not change meanwhile; each attempt reads the current state.

    Raises:
        ConflictError: the task keeps changing. Other errors are passed on.
    """
    for _ in range(MOST_TRIES):
        try:
            return attempt()
        except MovedOnError:
            continue
    raise ConflictError("task-changed-meanwhile", task=task)


def standing(services: Services, task: str) -> Standing:
    """Return the current state of a task.

    Raises:
        InputError: the task name is invalid.
        NotFoundError: neither the task nor a job that learns it exists.
        ConflictError: its rows are not stored here.
    """
    with services.database.read() as session:
        return _found(session, require_name(task))


def _found(session: Session, task: str, *, hold: bool = False) -> Standing:
    job = JobRepository(session).newest_learning(task, hold=hold)
    present = TaskRepository(session).held(task) if hold else TaskRepository(session).find(task)
    newest = next(iter(VersionRepository(session).newest(task, 1)), None)
    if job is None and present is None:
        TaskRepository(session).get(task)  # raises with similar names
        raise NotFoundError("unknown-task", task=task, guess="")
    if job is None:
        raise _no_rows(task, newest)
    return Standing(task, _with_renamings(session, job), job, newest, present)


def _with_renamings(session: Session, job: Job) -> JobSpec:
    """Return the spec of a job with the labels as renamed since."""
    since = [
        version for version in VersionRepository(session).newest(job.spec.task, MOST_RENAMINGS)
        if version.kind == LABELS_CHANGED and version.created_at > job.created_at
    ]  # fmt: skip
    spec = job.spec
    for version in since:
        written = list(spec.options.get("label_description", ()))
        if version.change is not None and "to" in version.change:
            old, new = version.change.get("labels", [""])[0], version.change["to"]
            written = _renamed_descriptions(written, old, new)
        options = {**spec.options, "label_description": written} if written else spec.options
        spec = replace(spec, dataset=version.dataset_digest, options=options)
    return spec


def _no_rows(task: str, newest: EmbeddingVersion | None) -> ConflictError:
    shipped = newest is not None and newest.kind == "source"
    why = "was shipped with its base" if shipped else "was not learned here"
    return ConflictError("task-rows-not-stored", task=task, reason=why)


def _renamed_descriptions(written: list[str], old: Label, new: Label) -> list[str]:
    """Replace a renamed label in descriptions LABEL=TEXT."""
    begins = f"{label_text(old)}="
    return [f"{label_text(new)}={one[len(begins) :]}" if one.startswith(begins) else one for one in written]
