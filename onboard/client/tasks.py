"""Requests about tasks and their versions, with typed results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any

from pydantic import PrivateAttr

from onboard.client.asking import get, send, upload
from onboard.client.connection import PATIENCE_SECONDS
from onboard.client.frames import as_files
from onboard.client.json_object import JsonObject
from onboard.client.steps import Steps, operation
from onboard.client.uploads import Upload
from onboard.client.versions import Versions, change_labels, task_documents, versions_page
from onboard.contract.carrying import CarriedDocument, CarriedTasks
from onboard.contract.changes import ChangedLabels, TaskLabel
from onboard.contract.document import read
from onboard.contract.evaluations import ComparisonDocument, EvaluationDocument
from onboard.contract.versions import TaskDetail, VersionDocument
from onboard.domain.arguments import speaking_of_arguments
from onboard.domain.dataset import Label as LabelValue
from onboard.domain.evaluation import Evaluation
from onboard.domain.label_change import LabelChange
from onboard.domain.names import Reference, require_name


class PublishedVersion(VersionDocument):
    """A version of a task.

    Args:
        metrics: by split, `{"validation": {NAME: {"value", "low", "high", "n"}} | None, "test": …}`.
        method, stored_bytes: None from services of earlier releases.
        init: where it started: "sst2@v1", "random", "(own)" (without an embedding), …
    """

    _aliases: tuple[str, ...] = PrivateAttr(default=())

    @property
    def aliases(self) -> tuple[str, ...]:
        """The aliases that point to it."""
        return self._aliases


class Tasks(Versions):
    """List, compare and carry tasks. A response with missing or wrong parts raises AnswerError."""

    @operation
    def tasks(
        self, *, label: str | None = None, metric: str | None = None, at_least: float | None = None
    ) -> Steps[list[TaskDetail]]:
        """Return matching tasks by name; the arguments are the options of `onboard tasks list`. Raises InputError."""
        from onboard.domain.task_search import TaskSearch  # imports the metrics of all task kinds

        documents = yield from task_documents(TaskSearch(label=label, metric=metric, at_least=at_least))
        return [document.parsed(TaskDetail) for document in documents]

    @operation
    def task(self, task: str) -> Steps[TaskDetail]:
        """Return a task with its aliases. Raises NotFoundError."""
        return (yield from get(f"/v1/tasks/{require_name(task)}")).parsed(TaskDetail)

    @operation
    def versions(self, task: str, limit: int = 200, before: int | None = None) -> Steps[list[PublishedVersion]]:
        """Return the newest `limit` versions of a task, or those before a number. Raises NotFoundError."""
        page = yield from versions_page(task, limit, before)
        aliases = page.mapped("aliases", int)
        return [published(document, aliases) for document in page.parts("versions")]

    @operation
    def labels(self, task: str) -> Steps[list[TaskLabel]]:
        """Return the labels of a task's newest rows, with numbers of training rows and descriptions.

        Raises NotFoundError.
        """
        document = yield from get(f"/v1/tasks/{require_name(task)}/labels")
        return [part.parsed(TaskLabel) for part in document.parts("labels")]

    @operation
    def rename_label(self, task: str, label: LabelValue, to: LabelValue) -> Steps[ChangedLabels]:
        """Rename a label: creates a new version with the same answers. Nothing is trained, and no alias moves.

        Raises:
            InputError: the task does not have the label.
            ConflictError: the name is in use, or a job of the task is open.
            NotFoundError: the task does not exist.
        """
        return _changed(task, LabelChange("rename", (label,), to))

    @operation
    def merge_labels(
        self, task: str, labels: Sequence[LabelValue], to: LabelValue, *, fast: bool = False
    ) -> Steps[ChangedLabels]:
        """Merge several labels into one. A job learns the new version. Raises the same errors as `rename_label`."""
        return _changed(task, LabelChange("merge", tuple(labels), to), fast)

    @operation
    def delete_label(self, task: str, label: LabelValue, *, fast: bool = False) -> Steps[ChangedLabels]:
        """Delete a label with its rows. A job learns the new version. Raises the same errors as `rename_label`."""
        return _changed(task, LabelChange("delete", (label,)), fast)

    @operation
    def describe_label(
        self, task: str, label: LabelValue, description: str, *, fast: bool = False
    ) -> Steps[ChangedLabels]:
        """Describe a label. A job creates the new version. Raises the same errors as `rename_label`."""
        return _changed(task, LabelChange("describe", (label,), description=description), fast)

    @operation
    def compare(
        self, /, earlier: str, later: str, test: Any = None, *, text_field: str | Sequence[str] = (), **options: Any
    ) -> Steps[ComparisonDocument]:
        """Compare two versions of a task, like `onboard compare`. The verdict is about `later`.

        Args:
            test: a file or frame of labeled rows to compare them on; None uses the rows of the versions' datasets.
            text_field, options: of that file, as in `evaluate`.

        Raises:
            InputError: the references are invalid, or of two tasks.
            DatasetError: the rows do not fit the task.
            NotFoundError: a version does not exist.
        """
        a, b = Reference.parse_pair(earlier, later)
        path = f"/v1/tasks/{a.task}/compare?a={a.ref}&b={b.ref}"
        if test is None:
            answer = yield from send("GET", path, repeatable=True, timeout_seconds=PATIENCE_SECONDS)
        else:
            answer = yield from self._on_rows(path, test, a.task, text_field, options)
        return answer.parsed(ComparisonDocument)

    @operation
    def evaluate(
        self, /, reference: str, dataset: Any, *, text_field: str | Sequence[str] = (), **options: Any
    ) -> Steps[EvaluationDocument]:
        """Measure a version on labeled rows that it was not trained on, like `onboard evaluate`.

        Args:
            reference: TASK[@REF].
            dataset: a file, or a frame of pandas, polars or `datasets`.
            text_field: the column of the text, or the two columns of a pair.
            options: label_field="topic", unknown_labels="drop".

        Raises:
            DatasetError: the rows do not fit the task.
            NotFoundError: the version does not exist.
        """
        parsed = Reference.parse(reference)
        path = f"/v1/tasks/{parsed.task}/evaluate?ref={parsed.ref}"
        answer = yield from self._on_rows(path, dataset, parsed.task, text_field, options)
        return answer.parsed(EvaluationDocument)

    def _on_rows(
        self, path: str, dataset: Any, task: str, text_field: str | Sequence[str], options: Mapping[str, Any]
    ) -> Steps[JsonObject]:
        """Return the response to an uploaded file of labeled rows."""
        fields = {"dataset": dataset, "task": task, "text_field": text_field, **options}  # a frame needs a name
        words = nullcontext() if self.in_commands else speaking_of_arguments()
        with words, as_files(fields) as as_written:
            del as_written["task"]
            return (yield from upload(path, Upload.of(Evaluation(**as_written))))

    @operation
    def carry(
        self,
        task: str | None = None,
        *,
        dry_run: bool = False,
        on_page: Callable[[CarriedTasks], None] | None = None,
    ) -> Steps[CarriedTasks]:
        """Carry a task, or all tasks that are not at the head, to the head, like `onboard tasks carry`.

        Args:
            dry_run: judge only, change nothing.
            on_page: if no task is given, called after every few tasks.

        Raises:
            NotFoundError: the task does not exist. Tasks that the guard refuses are in `refused`.
        """
        path = "/v1/carry" if task is None else f"/v1/tasks/{require_name(task)}/carry"
        pages, cursor = list[CarriedDocument](), dict[str, str]()
        while True:  # a few tasks per request; repeatable, because tasks at the head are not carried again
            body = {"dry_run": dry_run, **cursor}
            answer = yield from send("POST", path, body, repeatable=True, timeout_seconds=PATIENCE_SECONDS)
            page = answer.parsed(CarriedDocument)
            pages.append(page)
            if task is None and on_page is not None:
                on_page(_together([page], dry_run))
            if page.next is None:
                return _together(pages, dry_run)
            cursor = {"cursor": page.next}


def _changed(task: str, change: LabelChange, fast: bool = False) -> Steps[ChangedLabels]:
    return (yield from change_labels(task, change, fast=fast)).parsed(ChangedLabels)


def published(document: JsonObject, aliases: Mapping[str, int]) -> PublishedVersion:
    """Return a version with its aliases, selected from all aliases of its task. Raises AnswerError."""
    version = document.parsed(PublishedVersion)
    version._aliases = tuple(sorted(alias for alias, number in aliases.items() if number == version.version))
    return version


def _together(pages: Sequence[CarriedDocument], dry_run: bool) -> CarriedTasks:
    """Combine the responses to several requests, each about a few tasks."""
    answers = [page.document for page in pages]
    carried, refused = ([task for answer in answers for task in answer[key]] for key in ("carried", "refused"))
    return read(CarriedTasks, {"dry_run": dry_run, "carried": carried, "refused": refused}, "")
