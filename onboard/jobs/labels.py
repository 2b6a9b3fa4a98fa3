"""Use case: list, rename, merge, delete and describe a task's labels. Each change makes a new version.

A renaming trains nothing: the version answers as before. Other changes queue a job, which computes the readout from
stored features of the rows. No alias moves before somebody promotes the version.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from onboard.contract.changes import ChangedLabels, TaskChange
from onboard.data.amended import Amended, with_labels
from onboard.data.descriptions import descriptions_of
from onboard.domain.dataset import label_key, label_text
from onboard.domain.job import JobState
from onboard.domain.label_set import labels_of
from onboard.errors import ConflictError, InputError
from onboard.jobs.add import Added, Made, Queueing, queue_change
from onboard.jobs.room import require_room
from onboard.jobs.standing import Standing, standing, until_unmoved
from onboard.jobs.submit import pack
from onboard.registry.audit import actor
from onboard.registry.versions import VersionRepository
from onboard.versions.rename import publish_renamed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from onboard.domain.dataset import Dataset, Label
    from onboard.domain.label_change import LabelChange
    from onboard.domain.task import EmbeddingVersion
    from onboard.jobs.doorbell import Doorbell
    from onboard.registry.services import Services

_DESCRIPTIONS: Final = "label_description"  # option of a job


@dataclass(frozen=True)
class Relabeled:
    """The result of a change of labels: a version, or a job that makes one."""

    task: str
    change: TaskChange
    version: EmbeddingVersion | None = None
    queued: Added | None = None

    def to_document(self) -> ChangedLabels:
        """Return the document of `onboard labels TASK rename A B --json`."""
        job = None if self.queued is None else self.queued.job
        return ChangedLabels(
            task=self.task, version=self.version and self.version.version, job=job and job.id,
            state=JobState.SUCCEEDED if job is None else job.state, change=self.change,
            warning=self.queued and self.queued.warning,
        )  # fmt: skip


def list_labels(services: Services, task: str) -> dict[str, Any]:
    """Return the labels of a task's newest rows with their words, training rows and descriptions.

    A task that was pulled or ships with its base has no rows here; its labels are those of its newest version.

    Raises:
        NotFoundError: see `standing`.
    """
    try:
        stands = standing(services, task)
    except ConflictError:
        with services.database.read() as session:
            (version,) = VersionRepository(session).newest(task, 1)
        return _listing(task, version, None, version.labels)
    dataset = stands.dataset(services)
    counts = Counter(label_key(label) for row in dataset.train for label in labels_of(dataset.kind, row.label))
    job = stands.job.id if stands.job is not None and stands.is_open else None
    return _listing(task, stands.version, job, dataset.labels, counts, _described(stands, dataset))


def _listing(
    task: str,
    version: EmbeddingVersion | None,
    job: str | None,
    labels: Sequence[Label],
    rows: Mapping[str, int] | None = None,
    described: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Return the document of `onboard labels`; without rows, the number of rows per label is unknown."""
    words = {} if version is None else dict(zip(map(label_key, version.labels), version.words, strict=False))
    keys = [(label, label_key(label)) for label in labels]
    return {
        "task": task,
        "version": None if version is None else version.version,
        "job": job,
        "labels": [
            {
                "label": label, "word": words.get(key), "rows": None if rows is None else rows.get(key, 0),
                "description": (described or {}).get(key),
            }
            for label, key in keys
        ],
    }  # fmt: skip


def change_labels(
    services: Services,
    doorbell: Doorbell,
    task: str,
    asked: LabelChange,
    how: Queueing | None = None,
    *,
    fast: bool = False,
    accepted: Callable[[], object] = lambda: None,
) -> Relabeled:
    """Change a task's labels.

    Args:
        doorbell: wakes a worker if a job is queued.
        how: how a job is queued.
        fast: learn only the readout, no embedding.
        accepted: called once all checks have passed.

    Raises:
        InputError: the task does not have the label, or has no labels.
        ConflictError: the name is in use, only one label would remain, a job of the task is unfinished, or its rows are
            not stored here.
        QuotaError: the owner has as many jobs or bytes as it may have.
        NotFoundError: the task does not exist or was deleted meanwhile.
    """
    if asked.action == "rename":
        return _renamed(services, task, asked, how.owner if how else None)

    def made(stands: Standing, dataset: Dataset) -> Made:
        return _made(stands, dataset, asked, fast=fast)

    queued = queue_change(services, doorbell, task, made, how or Queueing(), accepted)
    return Relabeled(task, queued.change, queued=queued)


def _renamed(services: Services, task: str, asked: LabelChange, owner: str | None) -> Relabeled:
    def attempt() -> Relabeled:
        stands = standing(services, task)
        dataset = stands.dataset(services)
        known = _known(stands, dataset, asked)
        version = stands.version
        if version is None:
            raise _open(stands)
        change = _change(stands, known)
        packed = pack(with_labels(dataset, known.become, known.after(dataset.labels)).dataset, task)
        require_room(services.database, owner, packed.sizes, jobs=0)
        snapshot = packed.stored(services)
        published = publish_renamed(services, version, known, snapshot, change, stands.require_unchanged, owner)
        return Relabeled(task, change, version=published)

    return until_unmoved(task, attempt)


def _made(stands: Standing, dataset: Dataset, asked: LabelChange, *, fast: bool) -> Made:
    known = _known(stands, dataset, asked)
    described = _described(stands, dataset)
    labels = known.after(dataset.labels)
    if known.action == "describe":
        amended = Amended(dataset, {})
        key, text = label_key(known.labels[0]), known.description or ""
        described = {name: said for name, said in described.items() if name != key}
        described |= {key: text} if text.strip() else {}
    else:
        amended = with_labels(dataset, known.become, labels)
    left = {label_key(label): label for label in labels}
    written = [f"{label_text(left[key])}={text}" for key, text in described.items() if key in left]
    descriptions_of(written, labels)  # rejects descriptions that are too long or empty
    options: dict[str, Any] = {_DESCRIPTIONS: written}
    if fast:
        options["fast"] = True
    change = _change(stands, known, counts=dict(amended.counts))
    return Made(amended, change, f"the rows of {stands.task}", options=options)


def _change(stands: Standing, known: LabelChange, **more: Any) -> TaskChange:
    texts = {"to": known.to, "description": known.description}
    named = {name: value for name, value in texts.items() if value is not None}
    return stands.change(known.action, labels=known.labels, by=actor(), **named, **more)


def _known(stands: Standing, dataset: Dataset, asked: LabelChange) -> LabelChange:
    """Return the change with the task's labels. Raises InputError, ConflictError: it does not fit the current rows."""
    if stands.is_open:
        raise _open(stands)
    if not dataset.labels:
        raise InputError("task-without-labels", task=stands.task)
    known = asked.known_to(stands.task, dataset.labels)
    if known.action == "merge" and not dataset.train:
        raise ConflictError("task-without-rows", task=stands.task)
    return known


def _open(stands: Standing) -> ConflictError:
    job = stands.job.id if stands.job is not None else ""
    return ConflictError("task-being-learned", task=stands.task, job=job)


def _described(stands: Standing, dataset: Dataset) -> dict[str, str]:
    """Return descriptions of the remaining labels by `label_key`."""
    descriptions: dict[str, str] = {}
    for written in stands.spec.options.get(_DESCRIPTIONS, ()):
        try:
            descriptions |= descriptions_of([written], dataset.labels)
        except InputError:
            continue
    return descriptions
