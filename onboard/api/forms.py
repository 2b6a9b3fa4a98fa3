"""Generate the forms of a submission from its declaration, with validation and OpenAPI description."""

from __future__ import annotations

from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field, create_model

from onboard.domain import submission
from onboard.domain.addition import Addition
from onboard.domain.evaluation import Evaluation
from onboard.domain.submission import Submission, fields_of


def form_of(declaration: type[Any], name: str, about: str, *, checked: bool) -> type[BaseModel]:
    """Return a form with the fields of a declaration, without files.

    Args:
        name, about: name and description of the form, for client generators.
        checked: only fields that affect how rows are read; otherwise these come first.
    """
    listed = [field for field in fields_of(declaration) if field.option.form is not None and not field.is_file]
    listed = [field for field in listed if field.option.checked or not checked]
    listed.sort(key=lambda field: not field.option.checked)
    fields: dict[str, Any] = {field.name: _form_field(field) for field in listed}
    return create_model(name, __config__=ConfigDict(extra="forbid"), __doc__=about, **fields)


def described(form: type[BaseModel], declaration: type[Any] = Submission) -> dict[str, Any]:
    """Return the body's description for `openapi_extra`: the form's fields and the files."""
    schema = form.model_json_schema()
    schema["properties"] = {name: _given(described) for name, described in schema["properties"].items()}
    for field in fields_of(declaration):
        if field.is_file:
            schema["properties"][field.name] = {"type": "string", "format": "binary", "description": _text_of(field)}
    return {"requestBody": {"required": True, "content": {"multipart/form-data": {"schema": schema}}}}


def _form_field(field: submission.Field) -> tuple[Any, Any]:
    kind: Any = list[Annotated[str, Field(max_length=field.option.letters)]] if field.repeated else field.type
    default = list(field.default) if field.repeated else field.default
    former: dict[str, Any] = {"json_schema_extra": {"deprecated": True}} if field.option.instead else {}
    limits = Field(default, description=_text_of(field), **field.option.limits, **former)
    return (kind | None if field.default is None else kind), limits


def _text_of(field: submission.Field) -> str:
    return field.option.form or field.option.help


def _given(field: dict[str, Any]) -> dict[str, Any]:
    """Convert a field's schema for forms, which omit values that a document would set to null."""
    kind: dict[str, Any]
    (kind,) = [choice for choice in field.get("anyOf", [{}]) if choice.get("type") != "null"]
    return {key: value for key, value in field.items() if key != "anyOf" and value is not None} | kind


DatasetForm: Final = form_of(
    Submission,
    "DatasetForm",
    "Fields of an upload, named like the flags of `onboard check`.\n\n"
    "The files are dataset, validation, test and unlabelled.",
    checked=True,
)
JobForm: Final = form_of(
    Submission, "JobForm", "Fields of a submission, named like the flags of `onboard submit`.", checked=False
)
EvaluationForm: Final = form_of(
    Evaluation,
    "EvaluationForm",
    "Fields of an upload of labeled rows, named like the flags of `onboard evaluate`.",
    checked=False,
)
AdditionForm: Final = form_of(
    Addition, "AdditionForm", "Fields of an upload of rows, named like the flags of `onboard add`.", checked=False
)
REPEATED: Final = frozenset(field.name for field in fields_of(Submission) if field.repeated)
LINES: Final = frozenset(field.name for field in fields_of(Submission) if field.option.lines)
