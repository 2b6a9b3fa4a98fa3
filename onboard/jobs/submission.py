"""Use case: convert a submission to a checked request, in the same way for all interfaces."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from onboard.data.task_name import check_task_name, task_name_of
from onboard.domain.job import JobSpec
from onboard.domain.report import require_metric
from onboard.domain.submission import Submission, asked
from onboard.errors import InputError, OnboardError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from onboard.data.read import Checked, ReadOptions
    from onboard.domain.hub_terms import HubTerms
    from onboard.jobs.pace import Pace
    from onboard.jobs.submit import JobRequest

# Fields that decide how rows are read, that the job's spec has, or that only the queue needs. All other fields of a
# submission are options of the job, under the same name.
_FOR_ROWS: Final = frozenset({
    "dataset", "validation", "test", "unlabelled", "kind", "labels", "unknown_labels", "text_field", "label_field",
    "rows", "shots", "seed",
})  # fmt: skip
_FOR_SPEC: Final = frozenset({"task", "init", "tune_hypernetwork", "method", "metric", "base", "new_labels"})
_FOR_QUEUE: Final = frozenset({"queue", "priority", "key", "time_limit"})


def task_name(submission: Submission) -> str:
    """Return the task's name, as given or derived from the file's name.

    Raises:
        DatasetError: it would be derived from a file that cannot be read.
        InputError: the name is invalid.
    """
    from onboard.data.rows import require_format

    if submission.task is not None:
        return check_task_name(submission.task)
    if submission.dataset is None:
        require_something(submission)
        raise InputError("task-name-missing", field="task")  # fmt: skip
    require_format(submission.dataset)
    return task_name_of(submission.dataset)


def require_something(submission: Submission) -> None:
    """Raise InputError if there is neither a dataset nor a label set."""
    if submission.dataset is None and not submission.labels:
        raise InputError("dataset-missing", field="dataset")  # fmt: skip


@dataclass(frozen=True, slots=True)
class Outside:
    """Differences for remote callers: their files are in temporary folders, which are not shown.

    Args:
        hub_terms: conditions for downloading datasets of the hub.
    """

    hub_terms: HubTerms
    hub_folder: Path

    def options(self) -> dict[str, Any]:
        """Return the same as `onboard.data.read.ReadOptions`."""
        return {"hide_folders": True, "hub_terms": self.hub_terms, "hub_folder": self.hub_folder}


def check(
    submission: Submission,
    default_base: str,
    *,
    hide_folders: bool = False,
    outside: Outside | None = None,
    pace: Pace | None = None,
) -> dict[str, Any]:
    """Return the document of `onboard check --json`: the results of the checks and the estimated time.

    Args:
        default_base: base for label words and text lengths if the submission names none. If its files cannot be read,
            the dataset is checked without it.
        hide_folders: omit temporary folders from errors.
        outside: for remote callers.
        pace: pace of the workers; None estimates the time on a laptop.

    Raises:
        DatasetError, InputError: see `onboard.data.read.read_dataset`.
    """
    from onboard.jobs.pace import Pace

    name = task_name(submission)
    base = _tokens_at_hand(submission.base or default_base) | ({"hide_folders": True} if hide_folders else {})
    checked = _read(submission, _read_options(submission, outside, **base))
    report = checked.report.to_json()
    require_metric(submission.metric, report["kind"])
    estimated = _estimated(submission, checked, report, pace or Pace())
    metric = {"metric": submission.metric} if submission.metric else {}
    return {"task": name, **report, **metric, **estimated}


def _estimated(submission: Submission, checked: Checked, report: Mapping[str, Any], pace: Pace) -> dict[str, Any]:
    """Estimate the seconds of the job with and without tuning and of its first version, with the basis of
    the estimate.
    """
    from onboard.jobs.estimate import DatasetSize, estimate_seconds, first_seconds

    size, texts = DatasetSize.of_report(report), len(checked.unlabelled.rows) if checked.unlabelled else 0
    first = None if size is None else round(pace.seconds(first_seconds(size)))
    estimated: dict[str, int | None] = dict.fromkeys(("estimated_seconds", "estimated_seconds_tuned"), first)
    alone = submission.fast or checked.dataset.several_labels
    if size is not None and checked.dataset.train and not alone:
        estimated = {
            key: round(pace.seconds(estimate_seconds(size, unlabelled=texts, tuned=tuned)))
            for key, tuned in zip(estimated, (False, True), strict=True)
        }
    return {**estimated, "estimated_seconds_first": first, "estimate_basis": pace.basis}


def prepare(
    submission: Submission, default_base: str, *, owner: str | None = None, outside: Outside | None = None
) -> JobRequest:
    """Read and check the dataset of a submission, for `onboard.jobs.submit.submit`.

    Args:
        owner: the submitter, for the audit log.
        outside: see `check`.

    Raises:
        DatasetError, InputError: see `onboard.data.read.read_dataset`.
        NotFoundError, DamagedError: the base does not exist, or its tokenizer cannot be read.
    """
    from onboard.jobs.submit import JobRequest

    spec = job_spec(submission, default_base)
    options = _read_options(submission, outside, **_tokens(spec.base))
    return JobRequest(
        _read(submission, options), spec, submission.queue, submission.priority, submission.key,
        submission.time_limit, owner,
    )  # fmt: skip


def job_spec(submission: Submission, default_base: str) -> JobSpec:
    """Return the job's spec without its dataset; fields without another place become options."""
    placed = _FOR_ROWS | _FOR_SPEC | _FOR_QUEUE
    return JobSpec(
        task=task_name(submission),
        dataset="",
        init=submission.init,
        tune_hypernetwork=submission.tune_hypernetwork,
        method=submission.method,
        kind=submission.kind,
        metric=submission.metric,
        shots=submission.training_rows,
        seed=submission.seed,
        base=submission.base or default_base,
        new_labels=submission.new_labels,
        options={name: value for name, value in asked(submission).items() if name not in placed},
    )


def split_labels(text: str) -> tuple[str, ...]:
    """Split comma-separated labels; labels with commas are quoted as in CSV. Raises InputError."""
    if not text:
        return ()
    try:
        labels = tuple(label.strip() for label in next(csv.reader([text], skipinitialspace=True), []))
    except csv.Error as error:
        raise InputError("labels-not-csv", field="labels") from error
    if not labels or not all(labels):
        raise InputError("labels-one-empty", field="labels")
    return labels


def _read(submission: Submission, options: ReadOptions) -> Checked:
    """Read the dataset, or create one without labeled rows."""
    from onboard.data.labels_alone import read_labels
    from onboard.data.read import read_dataset

    require_something(submission)
    return read_labels(options) if submission.dataset is None else read_dataset(submission.dataset, options)


def _tokens_at_hand(base: str) -> dict[str, Any]:
    try:
        return _tokens(base)
    except OnboardError:
        return {}


def _tokens(base: str) -> dict[str, Any]:
    """Return what reading a dataset needs from the base: tokenizer, maximum length, and labels' words."""
    from onboard.bases import find_base
    from onboard.bases.tokens import token_counter, verbaliser_of

    named = find_base(base)
    return {
        "count_tokens": token_counter(named),
        "max_tokens": int(named.document["max_tokens"]),
        "verbaliser": verbaliser_of(named),
    }


def _read_options(submission: Submission, outside: Outside | None, **more: Any) -> ReadOptions:
    from onboard.data.read import ReadOptions

    more |= outside.options() if outside else {}
    return ReadOptions(
        validation=submission.validation,
        test=submission.test,
        unlabelled=submission.unlabelled,
        kind=submission.kind,
        labels=split_labels(submission.labels),
        descriptions=tuple(submission.label_description),
        unknown_labels=submission.unknown_labels,
        text_fields=tuple(submission.text_field),
        label_field=submission.label_field,
        shots=submission.training_rows,
        seed=submission.seed,
        **more,
    )
