"""Use case: queue a job that learns the annotations of a task and its other rows. The first job makes the task."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from onboard.data.amended import Amended, with_rows, without_rows
from onboard.domain.annotation import Text, as_sets, have_sets, labels_of_texts, texts_to_remove
from onboard.domain.dataset import Dataset, Example, Kind, Label, in_canonical_order, label_text
from onboard.domain.job import Job, JobState
from onboard.domain.label_set import MULTILABEL, all_labels, labels_in, set_text
from onboard.domain.submission import Submission
from onboard.errors import ConflictError, InputError, NotFoundError
from onboard.jobs.add import Made, Queueing, queue_change
from onboard.jobs.relabel import as_jsonl
from onboard.jobs.standing import Standing, standing
from onboard.jobs.submission import prepare
from onboard.jobs.submit import submit
from onboard.registry.annotations import AnnotationRepository
from onboard.registry.jobs import JobRepository

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from onboard.jobs.doorbell import Doorbell
    from onboard.registry.services import Services

SOURCE: Final = "annotations"  # what reports name where others name a file
_CHOICES: Final = ("one label", "several labels")
_IN_VAIN: Final = (JobState.FAILED, JobState.CANCELLED, JobState.DEAD)


def publish(services: Services, doorbell: Doorbell, task: str, *, fast: bool, owner: str | None = None) -> Job | None:
    """Queue a job that learns the newest annotations; if there is such a job already, return it.

    A job that has learned them in full is also returned with `fast`. A failed job is not returned.

    Annotated rows are added to those of the task, and correct the labels of its texts. Published texts without a
    current
    annotation are removed.

    Args:
        fast: stop after the readout.
        owner: the requester, for the audit log.

    Returns:
        The job; None if there is nothing to learn: no annotation, or rows of fewer than two labels for a new task.

    Raises:
        ConflictError: the task cannot be labeled here, as of `require_labelable`.
        InputError: a label would be left without rows.
    """
    with services.database.read() as session:
        repository = AnnotationRepository(session)
        revision, annotations = repository.revision(task), repository.list(task)
        earlier = _under(session, task, revision, fast=False) or (fast and _under(session, task, revision, fast=True))
    if earlier and earlier.state not in _IN_VAIN:
        return earlier
    labels, gone = labels_of_texts(annotations), texts_to_remove(annotations)
    key = None if earlier else _key(task, revision, fast=fast)
    if standing_of(services, task) is None:
        job = _first(services, doorbell, task, labels, Queueing(key=key, owner=owner), fast=fast)
    elif labels or gone:
        job = _changed(services, doorbell, task, labels, gone, Queueing(key=key, owner=owner), fast=fast)
    else:
        job = None
    if job is not None:
        with services.database.write() as session:
            AnnotationRepository(session).mark_published(task, revision, gone)
    return job


def published_under(session: Session, task: str, revision: int) -> Job | None:
    """Return the job that learns this revision of a task's annotations; None if there is none."""
    return _under(session, task, revision, fast=False) or _under(session, task, revision, fast=True)


def standing_of(services: Services, task: str) -> Standing | None:
    """Return the current state of a task; None if there is no such task.

    Raises:
        InputError: invalid task name.
        ConflictError: its rows are not stored here.
    """
    try:
        return standing(services, task)
    except NotFoundError:
        return None


def require_labelable(task: str, kind: str, has_pairs: bool | None, *, pairs: bool, several: bool) -> None:
    """Raise ConflictError unless each row of a task has one class, or a set of them, and texts of this form.

    Args:
        has_pairs: whether these are pairs; None where nobody knows.
        pairs: whether those that people label are.
        several: whether people may choose several labels for a text.
    """
    if kind not in ("classification", MULTILABEL):
        raise ConflictError("label-studio-task-of-numbers", task=task)
    if (kind == MULTILABEL) != several:
        raise ConflictError(
            "label-studio-other-choices", task=task, has=_CHOICES[not several], wanted=_CHOICES[several],
            choice="single" if several else "multiple",
        )  # fmt: skip
    if has_pairs is not None and has_pairs != pairs:
        kinds = ("one text", "a pair of texts")
        raise ConflictError("label-studio-other-texts", task=task, has=kinds[has_pairs], asked=kinds[pairs])


def require_connectable(services: Services, task: str, *, pairs: bool, several: bool) -> None:
    """Raise unless a project with such texts and choices can be labeled for a task, which need not exist yet.

    Raises:
        InputError: invalid task name.
        ConflictError: as `standing_of` and `require_labelable`, or the task was learned on another base.
    """
    stands = standing_of(services, task)
    if stands is not None:
        stands.require_present_base()
        if stands.present is not None and stands.version is not None:
            require_labelable(task, stands.present.kind, stands.version.pairs, pairs=pairs, several=several)


def _under(session: Session, task: str, revision: int, *, fast: bool) -> Job | None:
    return JobRepository(session).under(_key(task, revision, fast=fast))


def _key(task: str, revision: int, *, fast: bool) -> str:
    return f"{SOURCE}-{task}-{revision}{'-fast' if fast else ''}"


def _first(
    services: Services, doorbell: Doorbell, task: str, labels: Mapping[Text, str], how: Queueing, *, fast: bool
) -> Job | None:
    """The job that makes the task; None with rows of fewer than two labels, or with one set of labels in all rows."""
    several = have_sets(labels.values())
    kind: Kind = MULTILABEL if several else "classification"
    labels = as_sets(labels) if several else labels
    rows = [Example(*text, label) for text, label in labels.items()]
    if min(len(set(labels.values())), len(set(all_labels(kind, rows)))) < 2:
        return None
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{SOURCE}.jsonl"
        path.write_text(as_jsonl(rows, kind), encoding="utf-8")
        submission = Submission(path, task=task, kind=kind, fast=fast, key=how.key)
        request = prepare(submission, services.settings.base, owner=how.owner)
        return submit(services, doorbell, request)[0]


def _changed(
    services: Services, doorbell: Doorbell, task: str, labels: Mapping[Text, str], gone: Sequence[Text], how: Queueing,
    *, fast: bool,
) -> Job:  # fmt: skip
    def made(stands: Standing, stored: Dataset) -> Made:
        pairs = any(text[1] is not None for text in labels)
        has_pairs = stored.pairs if stored.train and labels else None
        several = have_sets(labels.values()) if labels else stored.several_labels
        require_labelable(task, stored.kind, has_pairs, pairs=pairs, several=several)
        rows = _examples(as_sets(labels) if several else labels, stored.kind, stored.labels)
        amended = _amended(stored, rows, gone)
        change = stands.change("replace", file=SOURCE, counts=dict(amended.counts))
        sent = Dataset(stored.kind, in_canonical_order(all_labels(stored.kind, rows)), rows) if rows else None
        options = {"fast": True} if fast else {}
        return Made(amended, change, f"the rows of {task} and {SOURCE}", sent, options)

    return queue_change(services, doorbell, task, made, how).job


def _examples(labels: Mapping[Text, str], kind: Kind, known: Sequence[Label]) -> tuple[Example, ...]:
    """Rows with the task's own labels instead of annotations that read the same: 1 instead of "1"."""
    own = {label_text(label): label for label in known}

    def of_task(label: str) -> Label:
        if kind != MULTILABEL:
            return own.get(label, label)
        return set_text(own.get(label_text(member), member) for member in labels_in(label))

    return tuple(Example(*text, of_task(label)) for text, label in labels.items())


def _amended(stored: Dataset, rows: Sequence[Example], gone: Sequence[Text]) -> Amended:
    """Return the dataset with the rows and without the removed texts; if nothing changes, the dataset itself."""
    amended = Amended(stored, {})
    if rows:
        try:
            amended = with_rows(stored, rows, correct=True)
        except InputError as error:
            if error.type != "rows-change-nothing":
                raise
    if not gone:
        return amended
    try:
        fewer = without_rows(amended.dataset, gone)
    except InputError as error:
        if error.type != "rows-not-in-task":
            raise
        return amended
    return Amended(fewer.dataset, {**amended.counts, **fewer.counts}, (*amended.findings, *fewer.findings))
