"""Prediction requests: task, reference, labels, a text or a pair. They are validated before any model is loaded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from onboard.domain.dataset import Label, label_key, label_text
from onboard.domain.limits import MAX_TEXT_CHARACTERS
from onboard.domain.names import LATEST, Reference, require_name
from onboard.errors import InputError

TEXT_FIELDS: Final[Mapping[bool, tuple[str, ...]]] = {False: ("text",), True: ("text_a", "text_b")}  # by `pairs`
_FIELDS = {"task", "ref", "labels", "unknown", "text", "text_a", "text_b"}
_MOST_NAMED: Final = 20  # labels that an error lists


@dataclass(frozen=True)
class PredictionRequest:
    """One text for one task.

    Args:
        reference: the version of the task.
        text_a: the text, or the first of a pair.
        text_b: the second of a pair, else None.
        labels: the answer is chosen from these; empty means all labels of the version.
        unknown: whether to detect texts that are unlike the task's data.
    """

    reference: Reference
    text_a: str
    text_b: str | None
    labels: tuple[Label, ...] = ()
    unknown: bool = False


class VersionInputs(Protocol):
    """The inputs that a version accepts."""

    @property
    def pairs(self) -> bool | None:
        """Whether it takes pairs of texts; None if unknown."""

    @property
    def labels(self) -> tuple[Label, ...]:
        """Its labels; none of a regression."""


def parse_requests(inputs: Sequence[Mapping[str, Any]]) -> list[PredictionRequest]:
    """Parse requests from `{"task", "ref"?, "labels"?, "unknown"?, "text" | "text_a", "text_b"}` documents.

    Raises:
        InputError: the first invalid input, by its position from 1, with field and remedy.
    """
    return [_parse(number, request) for number, request in enumerate(inputs, 1)]


def require_fitting(
    requests: Sequence[PredictionRequest], versions: Sequence[VersionInputs | None]
) -> dict[int, tuple[int, ...]]:
    """Check that each input fits the version that is to answer it.

    Args:
        versions: of each input; inputs without one are not checked.

    Returns:
        By position from 0, of inputs that name labels: the places, ascending, of these among the version's.

    Raises:
        InputError: of the first input that has one text where the version takes two, or the reverse, or labels that the
            version does not have.
    """
    chosen: dict[int, tuple[int, ...]] = {}
    # the indices for the same labels are only looked up once
    looked_up: dict[tuple[int, tuple[str, ...]], tuple[int, ...]] = {}
    for number, (request, version) in enumerate(zip(requests, versions, strict=True), 1):
        if version is None:
            continue
        given = request.text_b is not None
        if version.pairs is not None and version.pairs != given:
            from onboard.domain.task import texts_taken

            fields, got = TEXT_FIELDS[version.pairs], "text_a and text_b were" if given else "text was"
            raise InputError(
                "input-texts-differ",
                row=number,
                field=fields[0],
                fields=list(fields),
                task=request.reference.task,
                version=request.reference,
                taken=texts_taken(version.pairs),
                got=got,
                wanted=" and ".join(fields),
            )
        if request.labels:
            asked = id(version), tuple(map(label_key, request.labels))
            if asked not in looked_up:
                looked_up[asked] = label_places(number, request, version.labels)
            chosen[number - 1] = looked_up[asked]
    return chosen


def label_places(number: int, request: PredictionRequest, labels: Sequence[Label]) -> tuple[int, ...]:
    """The places, ascending, of the labels that an input's answer is chosen from; texts stand for typed labels too.

    Args:
        number: of the input, from 1.
        labels: of the version.

    Raises:
        InputError: fewer than two of them, or one that the version does not have; the remedy lists those that it has.
    """
    if not labels:
        raise InputError(
            "input-labels-of-regression",
            row=number,
            field="labels",
            task=request.reference.task,
            version=request.reference,
        )
    by_text = {label_text(label): place for place, label in reversed(list(enumerate(labels)))}
    by_key = {label_key(label): place for place, label in enumerate(labels)}
    places: set[int] = set()
    for label in request.labels:
        place = by_key.get(label_key(label), by_text.get(label) if isinstance(label, str) else None)
        if place is None:
            raise _no_choice(number, request, f"has no label {label_text(label)}", labels)
        places.add(place)
    if len(places) < 2:
        raise _no_choice(number, request, f"has only {label_text(request.labels[0])} to choose from here", labels)
    return tuple(sorted(places))


def _no_choice(number: int, request: PredictionRequest, what: str, labels: Sequence[Label]) -> InputError:
    listed = ", ".join(label_text(label) for label in labels[:_MOST_NAMED])
    more = f" and {len(labels) - _MOST_NAMED:,} more" if len(labels) > _MOST_NAMED else ""
    return InputError(
        "input-labels-wrong",
        row=number,
        field="labels",
        task=request.reference.task,
        labels=list(labels),
        version=request.reference,
        trouble=what,
        listed=listed,
        more=more,
    )


def _parse(number: int, document: Mapping[str, Any]) -> PredictionRequest:
    if not isinstance(document, Mapping):
        raise InputError("input-not-object", row=number)
    strange = sorted(map(str, set(document) - _FIELDS))
    if strange:
        remedy = "use task, ref, labels, unknown, text or text_a and text_b"
        raise _wrong(number, strange[0], "is not a field of an input", remedy)
    reference, labels, unknown = _reference(number, document), _labels(number, document), document.get("unknown", False)
    if not isinstance(unknown, bool):
        raise _wrong(number, "unknown", "is neither true nor false", "send true or false, or omit it")
    if "text" in document:
        for field in ("text_a", "text_b"):
            if field in document:
                raise _wrong(number, field, "cannot be combined with text", "send text alone, or text_a and text_b")
        return PredictionRequest(reference, _text(number, document, "text"), None, labels, unknown)
    if "text_a" not in document:
        raise _wrong(number, "text", "is missing", "send text, or text_a and text_b")
    pair = _text(number, document, "text_a"), _text(number, document, "text_b")
    return PredictionRequest(reference, *pair, labels, unknown)


def _labels(number: int, document: Mapping[str, Any]) -> tuple[Label, ...]:
    labels = document.get("labels")
    if labels is None:
        return ()
    remedy = "send a list of two or more of the task's labels, or omit it"
    if not isinstance(labels, list | tuple) or not labels:
        raise _wrong(number, "labels", "is not a list of labels", remedy)
    for label in labels:
        if not isinstance(label, str | bool | int | float) or label != label:
            raise _wrong(number, "labels", "contains an invalid label", remedy)
    return tuple(labels)


def _reference(number: int, document: Mapping[str, Any]) -> Reference:
    task, ref = document.get("task"), LATEST if document.get("ref") is None else document["ref"]
    if not isinstance(task, str):
        raise _wrong(number, "task", "is missing or not a string", "send the name of a task")
    if not isinstance(ref, str):
        raise _wrong(number, "ref", "is not a string", "send latest, v3 or an alias")
    field = "task"
    try:
        require_name(task)
        field = "ref"
        return Reference.parse(f"{task}@{ref}")
    except InputError as error:
        raise InputError(
            "input-name-invalid", row=number, field=field, reason=error.message, remedy=error.remedy
        ) from error


def _text(number: int, document: Mapping[str, Any], field: str) -> str:
    value = document.get(field)
    if not isinstance(value, str) or not value.strip():
        raise _wrong(number, field, "is missing, empty or not a string", f"send a text as {field}")
    if len(value) > MAX_TEXT_CHARACTERS:
        most = f"{MAX_TEXT_CHARACTERS:,} characters"
        raise _wrong(number, field, f"has {len(value):,} characters, {most} is the most", "shorten it")
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        raise _wrong(number, field, "contains half a surrogate pair", "send it as UTF-8") from None
    return value


def _wrong(number: int, field: str, what: str, remedy: str) -> InputError:
    return InputError("input-field-wrong", row=number, field=field, trouble=what, remedy=remedy)
