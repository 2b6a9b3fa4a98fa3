"""Texts to label next in the import formats of labeling tools, with the version's answers as suggestions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from onboard.domain.dataset import label_text
from onboard.errors import InputError

QUESTION: Final = "label"  # the question that suggestions answer; the tool must have a question of this name

_Row = Mapping[str, Any]


def label_studio_task(job: Mapping[str, Any], row: _Row, _: int) -> dict[str, Any]:
    """Return a task of Label Studio. The suggestion is a prediction, which is shown as a pre-annotation."""
    texts = texts_of(row)
    task: dict[str, Any] = {"data": {**texts, "onboard": doubt(row)}}
    if "value" in row:
        answer, kind, score = {"number": row["value"]}, "number", None
    elif row.get("answers"):
        likeliest = row["answers"][0]
        answer, kind = {"choices": [label_text(likeliest["label"])]}, "choices"
        score = likeliest["probability"]
    else:
        return task
    result = {"from_name": QUESTION, "to_name": next(iter(texts)), "type": kind, "value": answer}
    prediction = {"model_version": _version(job), "result": [result], **({} if score is None else {"score": score})}
    return {**task, "predictions": [prediction]}


def argilla_record(job: Mapping[str, Any], row: _Row, place: int) -> dict[str, Any]:
    """A record of Argilla."""
    suggestions: dict[str, Any] = {}
    if "value" in row:
        suggestions[QUESTION] = {"value": row["value"], "score": None, "agent": _version(job)}
    elif row.get("answers"):
        likeliest = row["answers"][0]
        suggestions[QUESTION] = {
            "value": label_text(likeliest["label"]), "score": likeliest["probability"], "agent": _version(job),
        }  # fmt: skip
    return {
        "id": f"{job['job']}-{place}", "fields": texts_of(row), "metadata": {}, "suggestions": suggestions,
        "responses": {}, "vectors": {},
    }  # fmt: skip


def doccano_example(job: Mapping[str, Any], row: _Row, _: int) -> dict[str, Any]:
    """Return an example of doccano. Its labels are shown, to be corrected or confirmed.

    Raises:
        InputError: the task has pairs of texts or numeric labels, which doccano does not support.
    """
    if "text" not in row or "value" in row:
        raise InputError("label-tool-unfit", task=job["task"])
    answers = row.get("answers") or ()
    return {"text": row["text"], "label": [label_text(answer["label"]) for answer in answers[:1]]}


WRITERS: Final[dict[str, Callable[[Mapping[str, Any], _Row, int], dict[str, Any]]]] = {
    "label-studio": label_studio_task, "argilla": argilla_record, "doccano": doccano_example,
}  # fmt: skip


def require_label_tool(tool: str | None) -> None:
    """Raise InputError if the labeling tool is not supported."""
    if tool is not None and tool not in WRITERS:
        raise InputError("unknown-label-tool", label_tool=tool, writers=list(WRITERS))


def texts_of(row: _Row) -> dict[str, str]:
    """The text of a row, or its two texts."""
    return {field: row[field] for field in ("text", "text_a", "text_b") if field in row}


def doubt(row: _Row) -> str:
    """Return the version's current answer for people, such as `good 0.52, bad 0.48`, or `3.4 ± 0.8`."""
    if "value" in row:
        return f"{row['value']} ± {row['spread']}"
    return ", ".join(f"{label_text(answer['label'])} {answer['probability']:.2f}" for answer in row.get("answers", ()))


def _version(job: Mapping[str, Any]) -> str:
    number = job.get("version")
    return f"onboard {job['task']}" + (f"@v{number}" if number else "")
