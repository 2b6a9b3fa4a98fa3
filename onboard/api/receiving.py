"""From an upload to an order: the form is checked like any request, and described in OpenAPI."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Annotated, Any, Generic, TypeVar

from fastapi import Depends, Request
from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError

from onboard.api.places import Places
from onboard.api.schemas.jobs import DatasetForm, JobForm
from onboard.api.uploads import Upload, received
from onboard.data.limits import MAX_FILE_BYTES
from onboard.errors import InputError
from onboard.jobs.submission import Order

_HUB = "hf://"
_FormT = TypeVar("_FormT", bound=DatasetForm)


@dataclass(frozen=True)
class Received(Generic[_FormT]):
    """A checked form and its files."""

    form: _FormT
    dataset: str
    upload: Upload

    def order(self, **more: Any) -> Order:
        """The order; `more` are its fields that do not stand in the form."""
        given = self.form.model_dump(exclude_none=True)
        files = self.upload.files
        return Order(
            **given,
            dataset=self.dataset,
            validation=files.get("validation"),
            test=files.get("test"),
            unlabelled=files.get("unlabelled"),
            hide_folders=True,
            **more,
        )


async def _dataset(request: Request) -> AsyncIterator[Received[DatasetForm]]:
    async with _received(request) as upload:
        yield _read(DatasetForm, upload)


async def _job(request: Request) -> AsyncIterator[Received[JobForm]]:
    async with _received(request) as upload:
        yield _read(JobForm, upload)


@asynccontextmanager
async def _received(request: Request) -> AsyncIterator[Upload]:
    places: Places = request.app.state.receiving
    with places.place():
        async with received(request, request.app.state.uploads) as upload:
            yield upload


ReceivedDataset = Annotated[Received[DatasetForm], Depends(_dataset)]
ReceivedJob = Annotated[Received[JobForm], Depends(_job)]


def described(form: type[DatasetForm]) -> dict[str, Any]:
    """The body's description for `openapi_extra`: the form's fields and the files."""
    schema = form.model_json_schema()
    schema["properties"] = {name: _given(described) for name, described in schema["properties"].items()}
    file = {"type": "string", "format": "binary"}
    schema["properties"]["dataset"] = {
        **file,
        "description": "JSONL, CSV, TSV or Parquet, plain or gzip; instead of a file the text hf://NAME[/CONFIG].",
    }
    schema["properties"]["validation"] = {**file, "description": "The validation split."}
    schema["properties"]["test"] = {**file, "description": "The test split."}
    schema["properties"]["unlabelled"] = {**file, "description": "Texts of which the report names those to label next."}
    schema["required"] = ["dataset"]
    return {"requestBody": {"required": True, "content": {"multipart/form-data": {"schema": schema}}}}


def _given(field: dict[str, Any]) -> dict[str, Any]:
    """A field as a form can have it: it is left out, where a document would say null."""
    kind: dict[str, Any]
    (kind,) = [choice for choice in field.get("anyOf", [{}]) if choice.get("type") != "null"]
    return {key: value for key, value in field.items() if key != "anyOf" and value is not None} | kind


def _read(form: type[_FormT], upload: Upload) -> Received[_FormT]:
    fields = dict(upload.fields)
    dataset = _source(fields, upload)
    try:
        checked = form.model_validate(_values(fields))
    except ValidationError as error:
        problems = [{**problem, "loc": ("body", *problem["loc"])} for problem in error.errors(include_context=False)]
        raise RequestValidationError(problems) from error
    return Received(checked, dataset, upload)


def _source(fields: dict[str, list[str]], upload: Upload) -> str:
    """The file of the dataset, or its name on the hub; never a path of the caller's."""
    named = fields.pop("dataset", [])
    if "dataset" in upload.files and not named:
        return str(upload.files["dataset"])
    if "dataset" not in upload.files and len(named) == 1 and named[0].startswith(_HUB):
        upload.content_bytes = MAX_FILE_BYTES  # nobody knows before it is fetched
        return named[0]
    raise InputError(
        "dataset: neither one file nor one hf:// name.", "Send the file as dataset, with its name.", field="dataset"
    )


def _values(fields: Mapping[str, list[str]]) -> dict[str, Any]:
    """Fields as the form has them: only text_field may be given more than once."""
    values: dict[str, Any] = {}
    for name, given in fields.items():
        if name == "text_field":
            values[name] = given
        elif len(given) > 1:
            raise InputError(f"{name[:100]}: it is given {len(given)} times.", "Give it once.", field=name[:100])
        else:
            values[name] = given[0]
    return values
