"""What predictions are asked for: task, reference, a text or a pair; checked before any model is loaded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from onboard.domain.limits import MAX_TEXT_CHARACTERS
from onboard.domain.names import LATEST, Reference, require_name
from onboard.domain.task import texts_taken
from onboard.errors import InputError

TEXT_FIELDS: Final[Mapping[bool, tuple[str, ...]]] = {False: ("text",), True: ("text_a", "text_b")}  # by `pairs`
_FIELDS = {"task", "ref", "text", "text_a", "text_b"}


@dataclass(frozen=True)
class PredictionRequest:
    """One text for one task.

    Args:
        reference: which version of which task.
        text_a: the text, or the first of a pair.
        text_b: the second of a pair, else None.
    """

    reference: Reference
    text_a: str
    text_b: str | None


def parse_requests(inputs: Sequence[Mapping[str, Any]]) -> list[PredictionRequest]:
    """Requests from `{"task", "ref"?, "text" | "text_a", "text_b"}` documents.

    Raises:
        InputError: the first input that is wrong, by its position from 1, with field and remedy.
    """
    return [_parse(number, request) for number, request in enumerate(inputs, 1)]


def require_forms(requests: Sequence[PredictionRequest], pairs: Mapping[str, bool | None]) -> None:
    """Raise InputError for the first input that has one text where its version takes two, or the reverse.

    Args:
        pairs: whether a version takes two texts, by the reference that names it; None where nobody knows.
    """
    for number, request in enumerate(requests, 1):
        taken, given = pairs[str(request.reference)], request.text_b is not None
        if taken is not None and taken != given:
            fields, got = TEXT_FIELDS[taken], "text_a and text_b were" if given else "text was"
            raise InputError(
                f"Input {number}: {request.reference} takes {texts_taken(taken)}, and {got} given.",
                f"Give {' and '.join(fields)} for {request.reference.task}.",
                row=number, field=fields[0], fields=list(fields), task=request.reference.task,
            )  # fmt: skip


def _parse(number: int, document: Mapping[str, Any]) -> PredictionRequest:
    if not isinstance(document, Mapping):
        raise InputError(f"Input {number} is no JSON object.", 'give {"task": …, "text": …}', row=number)
    unknown = sorted(map(str, set(document) - _FIELDS))
    if unknown:
        raise _wrong(number, unknown[0], "is not a field of an input", "use task, ref, text or text_a and text_b")
    reference = _reference(number, document)
    if "text" in document:
        for field in ("text_a", "text_b"):
            if field in document:
                raise _wrong(number, field, "stands beside text", "give text alone, or text_a and text_b")
        return PredictionRequest(reference, _text(number, document, "text"), None)
    if "text_a" not in document:
        raise _wrong(number, "text", "is missing", "give text, or text_a and text_b")
    return PredictionRequest(reference, _text(number, document, "text_a"), _text(number, document, "text_b"))


def _reference(number: int, document: Mapping[str, Any]) -> Reference:
    task, ref = document.get("task"), LATEST if document.get("ref") is None else document["ref"]
    if not isinstance(task, str):
        raise _wrong(number, "task", "is missing or no string", "give the name of a task")
    if not isinstance(ref, str):
        raise _wrong(number, "ref", "is no string", "give latest, v3 or an alias")
    field = "task"
    try:
        require_name(task)
        field = "ref"
        return Reference.parse(f"{task}@{ref}")
    except InputError as error:
        message = f"Input {number}: {field}: {error.message}"
        raise InputError(message, error.remedy, row=number, field=field) from error


def _text(number: int, document: Mapping[str, Any], field: str) -> str:
    value = document.get(field)
    if not isinstance(value, str) or not value.strip():
        raise _wrong(number, field, "is missing, empty or no string", f"give a text as {field}")
    if len(value) > MAX_TEXT_CHARACTERS:
        most = f"{MAX_TEXT_CHARACTERS:,} characters"
        raise _wrong(number, field, f"has {len(value):,} characters, {most} is the most", "shorten it")
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        raise _wrong(number, field, "holds half a character (a surrogate)", "give it as UTF-8") from None
    return value


def _wrong(number: int, field: str, what: str, remedy: str) -> InputError:
    return InputError(f"Input {number}: {field} {what}.", remedy, row=number, field=field)
