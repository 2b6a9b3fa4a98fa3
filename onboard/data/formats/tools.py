"""Exports of labeling tools: Label Studio, Argilla, doccano and Prodigy, recognized by the columns of a file.

An export contains more than the rows of a dataset: several annotators answer a question about a text, some skip it. A
`Tool` lists the question columns and interprets the answers; `onboard.data.annotators` combines them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

from onboard.data.formats.unreadable import UnreadableError
from onboard.data.limits import MAX_COLUMNS, MAX_QUESTIONS

Reason = Literal["rejected", "unlabelled", "several_labels", "no_label"]
Values = Mapping[str, object]

_BOOKKEEPING: Final = ("id", "annotator", "annotation_id", "created_at", "updated_at", "lead_time", "agreement")
_VERDICTS: Final = ("reject", "ignore", b"reject", b"ignore")
_ACCEPTED: Final = ("accept", b"accept")
_ANSWERS: Final = (*_VERDICTS, *_ACCEPTED)
_HASHES: Final = ("_input_hash", "_task_hash")
_RESPONSES, _STATUS = ".responses", ".responses.status"
_REJECTED: Final = ("skipped", "discarded")
_ARGILLA_1_STATES: Final = ("Default", "Edited", "Validated", "Discarded")
_NUMBERS: Final = ("rating", "number")  # questions of Label Studio with numeric answers
_SAMPLE_ROWS: Final = 100


class ToolAnswer(NamedTuple):
    """An annotator's answer: a label or a list of labels, or why there is none."""

    label: object
    reason: Reason | None = None


@dataclass(frozen=True, slots=True)
class Tool:
    """A kind of export, as found in a file.

    Args:
        questions: columns that annotators filled; empty if unknown.
        item: columns that identify the text of a row, if each annotation is a row; empty if each text is one.
        answers: returns the answers to a question, of a flattened row.
        flat: flattens a row of the file to texts and answers to these questions.
        sources: columns of the file that a flattened row with these columns needs.
    """

    name: str
    columns: tuple[str, ...]
    questions: tuple[str, ...]
    item: tuple[str, ...]
    answers: Callable[[Values, str], Sequence[ToolAnswer]]
    flat: Callable[[Values, Sequence[str]], Values]
    sources: Callable[[Sequence[str]], Sequence[str]]


def tool_of(columns: Sequence[str], rows: Callable[[], Iterable[Values]], *, typed: bool) -> Tool | None:
    """Return the tool that exported a file; None for a plain file of rows.

    Args:
        rows: its rows with all columns, from the first, if the columns are not sufficient.
        typed: whether values have types.
    """
    names = set(columns)
    if typed and "data" in names and names & {"annotations", "completions"}:
        return _label_studio(rows())
    if {"annotation_id", "annotator"} <= names or {"annotation_id", "lead_time"} <= names:
        return _label_studio_min(columns)
    if typed and {"fields", "responses"} <= names:
        return _argilla(rows())
    if typed and any(name.endswith(_RESPONSES) for name in columns):
        return _argilla_flat(columns)
    if "answer" in names and (names & set(_HASHES) or ({"options", "accept"} <= names and _is_prodigy(rows()))):
        return _prodigy(columns)
    if {"text", "annotation", "prediction", "status"} <= names and _is_argilla_1(rows()):
        return _as_it_is("Argilla", columns, ("annotation",), (), _argilla_1_answers, ("status",))
    if typed and names & {"id", "doc_id"} and names & {"text", "data"} and names & {"label", "labels"}:
        return _doccano(columns, rows())
    return None


def _sample(rows: Iterable[Values], column: str) -> list[object]:
    """Return the first values of a column, with bytes as texts."""
    values = [row.get(column) for row, _ in zip(rows, range(_SAMPLE_ROWS), strict=False)]
    return [value.decode("utf-8", "replace") if isinstance(value, bytes) else value for value in values]


def _noted(names: dict[str, None], more: Iterable[str], most: int) -> None:
    """Add names to those seen so far. Raises UnreadableError if there are too many for an export."""
    names.update(dict.fromkeys(more))
    if len(names) > most:
        message = f"has more than {most:,} fields or questions per object"
        raise UnreadableError("too_many_columns", message, "Export only the text and one question.")


def _label_studio(rows: Iterable[Values]) -> Tool:
    """JSON: one object per task, with its `data`, and `annotations` with a `result` per question."""
    data: dict[str, None] = {}
    questions: dict[str, None] = {}
    for row in rows:
        _noted(data, _mapping(row.get("data")), MAX_COLUMNS)
        for annotation in _annotations(row):
            _noted(questions, _results(annotation), MAX_QUESTIONS)

    def flat(row: Values, questions: Sequence[str]) -> Values:
        annotations = [(annotation, _results(annotation)) for annotation in _annotations(row)]
        answers = {question: [_answered(*given, question) for given in annotations] for question in questions}
        return {**_mapping(row.get("data")), **answers}

    return _nested("Label Studio", data, questions, flat)


def _annotations(row: Values) -> list[Values]:
    return [_mapping(annotation) for annotation in _list(row.get("annotations", row.get("completions")))]


def _results(annotation: Values) -> dict[str, list[object]]:
    """Return the answers by question."""
    answers: dict[str, list[object]] = {}
    for result in map(_mapping, _list(annotation.get("result"))):
        if _is_answer(result.get("value")):
            answers.setdefault(str(result.get("from_name")), []).append(_chosen(result.get("value")))
    return answers


def _answered(annotation: Values, results: Mapping[str, list[object]], question: str) -> Values:
    if annotation.get("was_cancelled") or annotation.get("skipped"):
        return {"value": None, "status": "skipped"}
    values = results.get(question, [])
    decides = annotation.get("ground_truth") is True
    return {"value": values[0] if len(values) == 1 else values, "status": "submitted", "decides": decides}


def _is_answer(value: object) -> bool:
    return any(name in _mapping(value) for name in ("choices", *_NUMBERS))


def _chosen(value: object) -> object:
    """`{"choices": ["A"]}` → `["A"]`, `{"rating": 4}` → 4; other values are unchanged."""
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], Mapping):
        value = value[0]
    given = _mapping(value)
    return next((given[name] for name in ("choices", *_NUMBERS) if name in given), value)


def _label_studio_min(columns: Sequence[str]) -> Tool:
    """JSON-MIN and CSV: one row per annotation; several choices of one annotator are JSON in CSV."""

    def answers(row: Values, question: str) -> list[ToolAnswer]:
        value = row.get(question)
        if isinstance(value, str) and value.startswith(('{"', '[{"')):
            with suppress(ValueError):
                value = json.loads(value)
        chosen = _chosen(value)
        if isinstance(row.get(question), str) and isinstance(chosen, int | float):  # in CSV all values are strings
            chosen = str(chosen)
        return [_answer(chosen)]

    asked = [name for name in columns if name not in _BOOKKEEPING]
    item = ("id",) if "id" in columns else ()
    return _as_it_is("Label Studio", columns, asked, item, answers)


def _argilla(rows: Iterable[Values]) -> Tool:
    """JSON: one object per record, with its `fields`, and `responses` with a list per question."""
    data: dict[str, None] = {}
    questions: dict[str, None] = {}
    for row in rows:
        _noted(data, _mapping(row.get("fields")), MAX_COLUMNS)
        _noted(questions, _mapping(row.get("responses")), MAX_QUESTIONS)

    def flat(row: Values, questions: Sequence[str]) -> Values:
        responses = _mapping(row.get("responses"))
        number = {} if row.get("id") is None else {"id": row["id"]}
        return {
            **number,
            **_mapping(row.get("fields")),
            **{question: _list(responses.get(question)) for question in questions},
        }

    return _nested("Argilla", {"id": None, **data}, questions, flat)


def records_of(whole: Mapping[str, object]) -> list[Values] | None:
    """Return the records of an Argilla file that is one object, as `to_dict` makes it; None for any other object.

    With `orient="names"` the object has a list per column, with `orient="index"` a record per id.
    """
    if all(isinstance(record, Mapping) and _is_record(record) for record in whole.values()):
        return [{"id": number, **_mapping(record)} for number, record in whole.items()] or None
    columns = {name: values for name, values in whole.items() if isinstance(values, list)}
    counts = {len(values) for values in columns.values()}
    if len(columns) < len(whole) or len(counts) != 1 or not _is_record(columns) or not _lists(columns):
        return None
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]


def _is_record(record: Values) -> bool:
    return {"fields", "responses"} <= set(record) or any(name.endswith((_RESPONSES, ".suggestion")) for name in record)


def _lists(columns: Mapping[str, list[object]]) -> bool:
    """Return whether the responses of columns are those of many records: a list or an object of each."""
    own = [values for name, values in columns.items() if name == "responses" or name.endswith(_RESPONSES)]
    return "id" in columns and all(isinstance(value, list | Mapping | None) for values in own for value in values)


def _argilla_flat(columns: Sequence[str]) -> Tool:
    """Output of `to_datasets` and flat lists: columns `label.responses` and `label.responses.status`, a list each."""
    questions: dict[str, None] = {}
    _noted(questions, [name.removesuffix(_RESPONSES) for name in columns if name.endswith(_RESPONSES)], MAX_QUESTIONS)
    beginnings = tuple(f"{question}." for question in questions)
    others = [name for name in columns if not name.startswith(beginnings)]
    own = {question + suffix for question in questions for suffix in (_RESPONSES, _STATUS)}

    def flat(row: Values, questions: Sequence[str]) -> Values:
        responses = {}
        for question in questions:
            values, states = _list(row.get(question + _RESPONSES)), _list(row.get(question + _STATUS))
            states += [None] * (len(values) - len(states))
            responses[question] = [
                {"value": value, "status": state} for value, state in zip(values, states, strict=False)
            ]
        return {**{name: row[name] for name in others if name in row}, **responses}

    def sources(asked: Sequence[str]) -> list[str]:
        read = own | set(asked)
        return [name for name in columns if name in read]

    return Tool("Argilla", (*others, *questions), tuple(questions), (), _responses, flat, sources)


def _is_argilla_1(rows: Iterable[Values]) -> bool:
    return all(state in _ARGILLA_1_STATES for state in _sample(rows, "status"))


def _argilla_1_answers(row: Values, question: str) -> list[ToolAnswer]:
    """Rows of Argilla 1: one `annotation` per record; its `status` tells whether the record was discarded."""
    if question != "status" and row.get("status") in ("Discarded", b"Discarded"):
        return [ToolAnswer(None, "rejected")]
    return [_answer(row.get(question))]


def _is_prodigy(rows: Iterable[Values]) -> bool:
    return all(answer in _ANSWERS for answer in _sample(rows, "answer"))


def _prodigy(columns: Sequence[str]) -> Tool:
    """JSONL: one row per annotation with its `answer`; a choice is in `accept`, otherwise the label is a column."""

    def answers(row: Values, question: str) -> list[ToolAnswer]:
        if question != "answer" and row.get("answer") in _VERDICTS:
            return [ToolAnswer(None, "rejected")]
        if question == "accept" and row.get(question) == [] and row.get("answer") in _ACCEPTED:
            return [ToolAnswer([], "no_label")]
        return [_answer(row.get(question))] if question == "accept" else [ToolAnswer(row.get(question))]

    questions = ("accept",) if {"options", "accept"} <= set(columns) else ()
    item = tuple(name for name in ("_input_hash",) if name in columns)
    return _as_it_is("Prodigy", columns, questions, item, answers, ("answer",))


def _doccano(columns: Sequence[str], rows: Iterable[Values]) -> Tool | None:
    """JSONL or an array: `id`, `text` (or `data`, since version 1.5) and a list of labels."""
    question = "label" if "label" in columns else "labels"
    listed = _sample(rows, question)
    if not any(isinstance(labels, list) for labels in listed):
        return None
    if not all(isinstance(labels, list) and all(isinstance(label, str) for label in labels) for labels in listed):
        return None
    return _as_it_is("doccano", columns, (question,), (), lambda row, asked: [_answer(row.get(asked))])


def _nested(
    name: str, data: Iterable[str], questions: Iterable[str], flat: Callable[[Values, Sequence[str]], Values]
) -> Tool:
    asked = tuple(questions)
    columns = (*(column for column in data if column not in asked), *asked)
    return Tool(name, columns, asked, (), _responses, flat, lambda columns: columns)


def _as_it_is(
    name: str,
    columns: Sequence[str],
    questions: Sequence[str],
    item: tuple[str, ...],
    answers: Callable[[Values, str], Sequence[ToolAnswer]],
    more: tuple[str, ...] = (),
) -> Tool:
    """Return an export with flat rows; `more` are columns to read in addition to the requested ones."""
    return Tool(
        name, tuple(columns), tuple(questions), item, answers, lambda row, _: row, lambda asked: (*asked, *item, *more)
    )


def _responses(row: Values, question: str) -> list[ToolAnswer]:
    """Return the answers to a question, a list of `{"value", "status"}`; other columns were imported.

    If some are marked as the ground truth, only those count.
    """
    given = row.get(question)
    if not isinstance(given, list):
        return [_answer(given)]
    answers = [(_response(_mapping(response)), _mapping(response).get("decides") is True) for response in given]
    deciding = [answer for answer, decides in answers if decides and answer.reason is None]
    return deciding or [answer for answer, _ in answers]


def _response(response: Values) -> ToolAnswer:
    status = response.get("status")
    if status in _REJECTED:
        return ToolAnswer(None, "rejected")
    return ToolAnswer(None, "unlabelled") if status == "draft" else _answer(response.get("value"))


def _answer(value: object) -> ToolAnswer:
    """Return a label, or a list of one."""
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if value is None or value == [] or (isinstance(value, str) and not value.strip()):
        return ToolAnswer(None, "unlabelled")
    if isinstance(value, list):
        return ToolAnswer(value, "several_labels")
    return ToolAnswer(value)


def _mapping(value: object) -> Values:
    return value if isinstance(value, Mapping) else {}


def _list(value: object) -> list[object]:
    return list(value) if isinstance(value, list) else []
