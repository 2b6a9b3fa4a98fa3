"""Use case: add, correct or remove rows of a task, which makes a new dataset from the current one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from onboard.bases import find_base
from onboard.bases.tokens import token_counter, verbaliser_of
from onboard.contract.changes import AcceptedRows, TaskChange
from onboard.data.more_rows import Words, amended, read_rows, report_of, takes_of
from onboard.data.read import Checked
from onboard.domain.dataset import Dataset, label_key
from onboard.domain.job import Job, JobSpec
from onboard.domain.label_set import all_labels
from onboard.domain.task import label_keys
from onboard.errors import ConflictError
from onboard.jobs.standing import Standing, standing, until_unmoved
from onboard.jobs.submit import JobRequest, submit
from onboard.registry.jobs import JobRepository

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from onboard.data.amended import Amended
    from onboard.data.more_rows import RowFile
    from onboard.domain.addition import Addition
    from onboard.jobs.doorbell import Doorbell
    from onboard.registry.services import Services

_BEFORE_FAST: Final = "before_fast"  # the option that stores how a task was learned before rows were added with --fast
_LEARNED_HOW: Final = ("method", "init", "tune_hypernetwork")
_OF_ONE_SUBMISSION: Final = frozenset(
    {"base_digest", "dataset_report", "change", "unlabelled", "fast", "superset", _BEFORE_FAST}
)


@dataclass(frozen=True)
class Added:
    """A queued job.

    Args:
        warning: a reason why it may have to wait.
        change: how its dataset was made.
    """

    job: Job
    warning: str | None
    change: TaskChange

    def to_document(self, findings: Sequence[Any] | None = None) -> AcceptedRows:
        """Return the document of `onboard add --json`, without the results of the checks."""
        return AcceptedRows.of_job(self.job, self.warning, findings, change=self.change)


def add(
    services: Services,
    doorbell: Doorbell,
    task: str,
    asked: Addition,
    *,
    owner: str | None = None,
    hide_folders: bool = False,
    accepted: Callable[[], object] = lambda: None,
) -> Added:
    """Queue a job that learns the task's rows together with those of a file.

    If the task changes meanwhile, the rows are applied to its new state.

    Args:
        asked: the file and what to do with its rows.
        owner: the requester, for the audit log.
        accepted: called once all checks have passed.

    Raises:
        DatasetError: the file's rows do not fit the task.
        InputError: the rows change nothing or leave a label without rows.
        NotFoundError: the task does not exist or was deleted meanwhile.
        ConflictError: the task's rows are not stored here, or it was learned on another base.
    """

    def made(stands: Standing, dataset: Dataset) -> Made:
        file = read_rows(asked, takes_of(dataset), hide_folders=hide_folders)
        return _made(stands, asked, file, amended(dataset, asked, file))

    how = Queueing(asked.queue, asked.priority, asked.key, asked.time_limit, owner)
    return queue_change(services, doorbell, task, made, how, accepted)


@dataclass(frozen=True)
class Made:
    """A changed dataset.

    Args:
        change: how it was made, without the digest of the rows.
        rows: submitted rows; None if labels were changed.
        source: readable origin of the rows.
        options: options of the job that differ from the last job's.
    """

    amended: Amended
    change: TaskChange
    source: str
    rows: Dataset | None = None
    options: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Queueing:
    """How a job is queued; see `onboard.jobs.request.JobRequest`."""

    queue: str = "default"
    priority: int = 0
    key: str | None = None
    time_limit_seconds: float | None = None
    owner: str | None = None


def queue_change(
    services: Services,
    doorbell: Doorbell,
    task: str,
    made: Callable[[Standing, Dataset], Made],
    how: Queueing,
    accepted: Callable[[], object] = lambda: None,
) -> Added:
    """Queue a job that learns the dataset that `made` makes from the current one; retry if the task changes meanwhile.

    Raises:
        ConflictError: the task keeps changing; otherwise as `add`.
    """

    def attempt() -> Added:
        earlier = None if how.key is None else _earlier(services, how.key, task)
        if earlier is not None:
            return earlier
        stands = standing(services, task)
        stands.require_present_base()
        done = made(stands, stands.dataset(services))
        spec = _spec(stands, done)
        request = JobRequest(
            Checked(done.amended.dataset, report_of(
                done.amended.dataset, done.source, done.amended.findings, _words(spec.base), spec.seed
            )),
            spec, how.queue, how.priority, how.key, how.time_limit_seconds, how.owner, rows=done.rows,
            unchanged=stands.require_unchanged,
        )  # fmt: skip
        job, warning = submit(services, doorbell, request, accepted)
        return Added(job, warning, TaskChange.model_validate(job.spec.change))

    return until_unmoved(task, attempt)


def _earlier(services: Services, key: str, task: str) -> Added | None:
    """Return the job that was queued under this key. Raises ConflictError: it makes another change."""
    with services.database.read() as session:
        job = JobRepository(session).under(key)
    if job is None:
        return None
    if job.spec.task != task or job.spec.change is None:
        raise ConflictError("key-in-use", key=key, job=job.id)
    return Added(job, None, TaskChange.model_validate(job.spec.change))


def _made(stands: Standing, asked: Addition, file: RowFile, amended: Amended) -> Made:
    change = stands.change(asked.how, file=file.source, counts=dict(amended.counts))
    kind = amended.dataset.kind
    labels = {label_key(label): label for label in all_labels(kind, file.rows)}
    rows = Dataset(kind, tuple(labels.values()), file.rows)
    source = f"the rows of {stands.task} and {file.source}"
    options = {"fast": True} if asked.fast else {}
    found = replace(amended, findings=(*file.findings, *amended.findings))
    return Made(found, change, source, rows, options)


def _spec(stands: Standing, made: Made) -> JobSpec:
    """Return the task's last spec with the changed dataset; it requests a new label set if the rows require one."""
    last, dataset = stands.spec, made.amended.dataset
    options = {name: value for name, value in last.options.items() if name not in _OF_ONE_SUBMISSION}
    options |= {**(made.options or {}), "change": made.change.to_json()}
    last = _with_embedding(last)
    if options.get("fast"):
        options[_BEFORE_FAST] = {name: getattr(last, name) for name in _LEARNED_HOW}
    known = stands.present is None or label_keys(stands.present.labels) == label_keys(dataset.labels)
    return replace(last, dataset="", shots=None, new_labels=not known, options=options)


def _with_embedding(last: JobSpec) -> JobSpec:
    """Restore the spec from before `--fast` or a task without rows left out the embedding."""
    if before := last.options.get(_BEFORE_FAST):
        return replace(last, **before)
    rows = last.options.get("dataset_report", {}).get("rows", {})
    without_rows = rows.get("train") == 0
    if not (last.fast or without_rows):
        return last
    return replace(last, **{name: getattr(JobSpec("", ""), name) for name in _LEARNED_HOW})


def _words(base: str) -> Words:
    named = find_base(base)
    return Words(token_counter(named), int(named.document["max_tokens"]), verbaliser_of(named))
