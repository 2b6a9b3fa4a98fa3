"""Convert an upload to a submission; the form is validated like any request."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import Depends, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ValidationError

from onboard.api.forms import LINES, REPEATED, AdditionForm, DatasetForm, EvaluationForm, JobForm
from onboard.api.upload_places import UploadPlaces
from onboard.api.uploads import ReceivedUpload, received
from onboard.data.formats.source import stem_of
from onboard.data.limits import MAX_FILE_BYTES
from onboard.data.task_name import proposal, task_name_of
from onboard.domain.addition import Addition
from onboard.domain.evaluation import Evaluation
from onboard.domain.submission import Submission
from onboard.errors import InputError

_HUB = "hf://"


@dataclass(frozen=True)
class ReceivedForm:
    """A validated form and its files."""

    form: BaseModel
    dataset: str | None
    upload: ReceivedUpload

    def submission(self, **more: Any) -> Submission:
        """Return the submission; `more` are fields outside the form."""
        given = self.form.model_dump(exclude_none=True)
        if "task" not in given and "dataset" in self.upload.names:
            given["task"] = _task_of(self.upload.names["dataset"])
        return Submission(**{**self.upload.files, **given, "dataset": self.dataset, **more})

    def evaluation(self) -> Evaluation:
        """Return the labeled rows to measure versions on. Raises InputError: they are not a file."""
        return Evaluation(dataset=self._file(), **self.form.model_dump(exclude_none=True))

    def addition(self, **more: Any) -> Addition:
        """Return the rows for a task. Raises InputError: they are not a file."""
        return Addition(dataset=self._file(), **self.form.model_dump(exclude_none=True), **more)

    def _file(self) -> str:
        if self.dataset is None or self.dataset.startswith(_HUB):
            raise InputError("dataset-not-a-file", field="dataset")
        return self.dataset


def _read(form: type[BaseModel], *, in_browser: bool = True) -> Callable[[Request], AsyncIterator[ReceivedForm]]:
    """Return a dependency that receives a form.

    Args:
        in_browser: whether it may come from a browser, which also sends fields that were left empty.
    """

    async def read(request: Request) -> AsyncIterator[ReceivedForm]:
        async with _received(request) as upload:
            if in_browser:
                _drop_blanks(upload)
            yield read_form(form, upload)

    return read


def _drop_blanks(upload: ReceivedUpload) -> None:
    """Remove empty fields and files, which browsers send; split multi-line fields."""
    upload.fields = {
        name: filled for name, given in upload.fields.items() if (filled := [text for text in given if text.strip()])
    }
    for name in LINES & upload.fields.keys():
        upload.fields[name] = [
            line.strip() for text in upload.fields[name] for line in text.splitlines() if line.strip()
        ]
    for name in [name for name, given in upload.names.items() if not given]:
        del upload.files[name], upload.names[name]


@asynccontextmanager
async def _received(request: Request) -> AsyncIterator[ReceivedUpload]:
    places: UploadPlaces = request.app.state.receiving
    with places.place() as sender:
        async with received(request, request.app.state.uploads, sender) as upload:
            yield upload


ReceivedDataset = Annotated[ReceivedForm, Depends(_read(DatasetForm, in_browser=False))]
ReceivedJob = Annotated[ReceivedForm, Depends(_read(JobForm, in_browser=False))]
ReceivedRows = Annotated[ReceivedForm, Depends(_read(EvaluationForm))]
ReceivedAddition = Annotated[ReceivedForm, Depends(_read(AdditionForm))]
TypedJob = Annotated[ReceivedForm, Depends(_read(JobForm))]


def read_form(form: type[BaseModel], upload: ReceivedUpload) -> ReceivedForm:
    """Validate an upload with the form. Raises RequestValidationError, InputError."""
    fields = dict(upload.fields)
    if "labels" in form.model_fields and "labels" not in fields and not _has_dataset(fields, upload):
        raise InputError("dataset-missing", field="dataset")
    dataset = _source(fields, upload) if "labels" not in fields or _has_dataset(fields, upload) else None
    try:
        checked = form.model_validate(_values(fields))
    except ValidationError as error:
        problems = [{**problem, "loc": ("body", *problem["loc"])} for problem in error.errors(include_context=False)]
        raise RequestValidationError(problems) from error
    return ReceivedForm(checked, dataset, upload)


def _has_dataset(fields: Mapping[str, list[str]], upload: ReceivedUpload) -> bool:
    return "dataset" in fields or "dataset" in upload.files


def _source(fields: dict[str, list[str]], upload: ReceivedUpload) -> str:
    """Return the file of the dataset, or its name on the hub; never a path from the caller."""
    named = fields.pop("dataset", [])
    if "dataset" in upload.files and not named:
        return str(upload.files["dataset"])
    if "dataset" not in upload.files and len(named) == 1 and named[0].startswith(_HUB):
        upload.content_bytes = MAX_FILE_BYTES  # unknown before it is downloaded
        return named[0]
    raise InputError("dataset-not-one-file", field="dataset")


def _task_of(name: str) -> str:
    """Return the task's name from the uploaded file's name, which differs on disk. Raises InputError."""
    try:
        return task_name_of(name)
    except InputError as error:
        raise InputError.like(error, f"Send the task's name as task, for example {proposal(stem_of(name))}.") from error


def _values(fields: Mapping[str, list[str]]) -> dict[str, Any]:
    """Return fields for validation; few may be repeated."""
    values: dict[str, Any] = {}
    for name, given in fields.items():
        if name in REPEATED:
            values[name] = given
        elif len(given) > 1:
            raise InputError("form-field-repeated", field=name[:100], times=len(given))
        else:
            values[name] = given[0]
    return values
