"""The base class of all documents, and how a document is read from a service's response."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final, Self, TypeVar

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PrivateAttr,
    SerializerFunctionWrapHandler,
    ValidationError,
    model_serializer,
)

from onboard.domain.documents import told
from onboard.domain.names import NAME_PATTERN
from onboard.errors import AnswerError

Label = str | bool | int | float
Name = Annotated[str, Field(pattern=NAME_PATTERN)]
Metrics = dict[str, Any]

_MOST_SHOWN: Final = 60  # characters of a wrong value
_KINDS: Final = {
    "string": "text", "int": "a whole number", "float": "a number", "bool": "true or false", "list": "a list",
    "tuple": "a list", "dict": "an object", "model": "an object", "model_attributes": "an object",
}  # fmt: skip


class Document(BaseModel):
    """A frozen document with the fields in the order of its JSON."""

    model_config = ConfigDict(
        frozen=True,
        validate_by_name=True,
        validate_by_alias=True,
        serialize_by_alias=True,
        protected_namespaces=(),
        defer_build=True,  # most programs use few of the documents
    )
    _answer: Mapping[str, Any] | None = PrivateAttr(default=None)

    @classmethod
    def of(cls, record: Any, **instead: Any) -> Self:
        """The document of a record. Its attributes have the field names, as in Python or as in JSON.

        Moments become ISO 8601 in UTC.

        Args:
            instead: fields that are not taken from the record.
        """
        facts = {
            name: told(source, getattr(record, source))
            for name, field in cls.model_fields.items()
            if name not in instead
            for source in [name, field.alias or name]
            if hasattr(record, source)
        }
        return cls(**facts, **instead)

    @property
    def document(self) -> dict[str, Any]:
        """The whole document, including members from a service of another release that have no field here."""
        return dict(self.to_json() if self._answer is None else self._answer)

    def to_json(self) -> dict[str, Any]:
        """The fields as a JSON-compatible document."""
        return self.model_dump(mode="json")


class Partial(Document):
    """A document that omits fields without a value: earlier releases stored fewer facts, and not every job has all."""

    model_config = ConfigDict(extra="allow")

    @model_serializer(mode="wrap")
    def _said(self, handler: SerializerFunctionWrapHandler):  # type: ignore[no-untyped-def]
        unsaid = {
            field.alias or name for name, field in type(self).model_fields.items() if name not in self.model_fields_set
        }
        return {name: value for name, value in handler(self).items() if name not in unsaid}


Read = TypeVar("Read", bound=Document)


def later(default: Any = None, description: str | None = None, alias: str | None = None) -> Any:
    """A field that services of earlier releases do not send."""
    return Field(default_factory=lambda: default, description=description, alias=alias)


def read(kind: type[Read], answer: Mapping[str, Any], place: str) -> Read:
    """Return the document in a response.

    Args:
        answer: parsed JSON.
        place: the host that sent it.

    Raises:
        AnswerError: a field is missing or has another type; the error names it.
    """
    try:
        document = kind.model_validate_json(json.dumps(answer), strict=True)
    except ValidationError as error:
        raise _unreadable(error, answer, place) from error
    document._answer = answer
    return document


def _unreadable(error: ValidationError, answer: Mapping[str, Any], place: str) -> AnswerError:
    first = error.errors(include_url=False)[0]
    if first["type"] == "missing":
        return missing(str(first["loc"][-1]), place)
    key, value = _wrong_part(first["loc"], answer)
    return AnswerError("answer-key-wrong", wrong=key, place=place, shown=shown(value), reason=_why(first))


def shown(value: Any) -> str:
    """Return an invalid value as JSON, shortened if it is long."""
    written = json.dumps(value)
    return written if len(written) <= _MOST_SHOWN else f"{written[: _MOST_SHOWN - 1]}…"


def missing(key: str, place: str) -> AnswerError:
    """Return the error for a response without the key."""
    return AnswerError("answer-key-missing", missing=key, place=place)


def _wrong_part(steps: Sequence[int | str], answer: Any) -> tuple[str, Any]:
    """Return the invalid key and value. Steps that are not keys of the answer are ignored: they name a union member."""
    key, value = "", answer
    for step in steps:
        if isinstance(value, dict) and step in value:
            key, value = str(step), value[step]
        elif isinstance(value, list) and isinstance(step, int):
            value = value[step]
        else:
            break
    return key, value


def _why(error: Any) -> str:
    kind = _KINDS.get(error["type"].rpartition("_")[0])
    if len([step for step in error["loc"] if step in ("str", "bool", "int", "float")]):
        return "which is not a label"
    return f"where this client reads {kind}" if kind else "which this client does not know"
