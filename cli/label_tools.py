"""Texts as labeling tools import them, with the answers of a version as suggestions."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from onboard.domain.dataset import label_text
from onboard.domain.label_set import ANSWERED_FROM
from onboard.errors import InputError

QUESTION: Final = "label"  # what the suggestions answer; the tool's question has to be called like it

_Row = Mapping[str, Any]


def label_studio_task(job: Mapping[str, Any], row: _Row, _: int) -> dict[str, Any]:
    """A task of Label Studio; the suggestion is a prediction, which it shows as a pre-annotation."""
    texts = texts_of(row)
    task: dict[str, Any] = {"data": {**texts, "onboard": doubt(row)}}
    if "value" in row:
        answer, kind, score = {"number": row["value"]}, "number", None
    elif row.get("answers"):
        chosen = suggested_labels(row)
        if not chosen:  # a set without labels
            return task
        answer, kind = {"choices": [label_text(one["label"]) for one in chosen]}, "choices"
        score = min(one["probability"] for one in chosen)
    else:
        return task
    result = {"from_name": QUESTION, "to_name": next(iter(texts)), "type": kind, "value": answer}
    prediction = {"model_version": _version(job), "result": [result], **({} if score is None else {"score": score})}
    return {**task, "predictions": [prediction]}


def argilla_record(job: Mapping[str, Any], row: _Row, place: int) -> dict[str, Any]:
    """A record of Argilla."""
    answers = suggested_labels(row)
    value: Any = [label_text(answer["label"]) for answer in answers]
    score: Any = [answer["probability"] for answer in answers]
    if "value" in row:
        value, score = row["value"], None
    elif not row.get("several") and answers:
        (value,), (score,) = value, score
    suggested = "value" in row or row.get("several") or answers
    suggestions = {QUESTION: {"value": value, "score": score, "agent": _version(job)}} if suggested else {}
    return {
        "id": row.get("id") or f"{job['job']}-{place}", "fields": texts_of(row), "metadata": {},
        "suggestions": suggestions, "responses": {}, "vectors": {},
    }  # fmt: skip


def doccano_example(job: Mapping[str, Any], row: _Row, _: int) -> dict[str, Any]:
    """An example of doccano, which shows the labels that it comes with, to be corrected or confirmed.

    Raises:
        InputError: the task takes pairs of texts, or numbers; doccano has one text, and labels.
    """
    if "text" not in row or "value" in row:
        raise InputError("label-tool-unfit", task=job["task"])
    return {"text": row["text"], "label": [label_text(answer["label"]) for answer in suggested_labels(row)]}


WRITERS: Final[dict[str, Callable[[Mapping[str, Any], _Row, int], dict[str, Any]]]] = {
    "label-studio": label_studio_task, "argilla": argilla_record, "doccano": doccano_example,
}  # fmt: skip


def require_label_tool(tool: str | None) -> None:
    """Raise InputError where it is not a tool that texts to label next are written for."""
    if tool is not None and tool not in WRITERS:
        raise InputError("unknown-label-tool", label_tool=tool, writers=list(WRITERS))


def suggested_labels(row: _Row) -> Sequence[Mapping[str, Any]]:
    """Return the answers that a tool suggests: the likeliest one, or all labels of a set."""
    answers = row.get("answers") or ()
    if row.get("several"):
        return [answer for answer in answers if answer["probability"] >= ANSWERED_FROM]
    return list(answers[:1])


def answered_row(texts: Mapping[str, str], answer: Mapping[str, Any], number: object, *, numbers: bool) -> _Row:
    """Return a text with its prediction as a row for a labeling tool.

    Args:
        texts: `text`, or `text_a` and `text_b`.
        answer: prediction with all probabilities.
        number: the id that the text has in the tool; None takes one from its content, the same every time.
        numbers: whether the task predicts numbers.
    """
    row: dict[str, Any] = {**texts, "id": str(number) if number not in (None, "") else _number_of(texts)}
    shares = answer["probabilities"]
    if numbers:
        spread = sum(share["probability"] * (share["label"] - answer["label"]) ** 2 for share in shares) ** 0.5
        return {**row, "value": round(answer["label"], 4), "spread": round(spread, 4)}
    rounded = [{**share, "probability": round(share["probability"], 4)} for share in shares]
    ordered = sorted(rounded, key=lambda share: -float(share["probability"]))
    return {**row, "answers": ordered, "several": "labels" in answer}


def _number_of(texts: Mapping[str, str]) -> str:
    return hashlib.sha256(json.dumps(texts, sort_keys=True).encode()).hexdigest()[:16]


def texts_of(row: _Row) -> dict[str, str]:
    """The text of a row, or its two texts."""
    return {field: row[field] for field in ("text", "text_a", "text_b") if field in row}


def doubt(row: _Row) -> str:
    """The version's current answer, for annotators: `good 0.52, bad 0.48`, or `3.4 ± 0.8`."""
    if "value" in row:
        return f"{row['value']} ± {row['spread']}"
    return ", ".join(f"{label_text(answer['label'])} {answer['probability']:.2f}" for answer in row.get("answers", ()))


def _version(job: Mapping[str, Any]) -> str:
    number = job.get("version")
    return f"onboard {job['task']}" + (f"@v{number}" if number else "")
