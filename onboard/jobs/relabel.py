"""Use case: correct the labels of a job's suspicious rows."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from onboard.data.previews import preview_texts
from onboard.data.snapshot import load
from onboard.domain.dataset import Dataset, Example, Kind
from onboard.domain.job import Job
from onboard.domain.label_set import MULTILABEL, labels_in
from onboard.errors import ConflictError, InputError
from onboard.registry.services import Services
from onboard.report.reading import listing, mapping, mappings

_CODE: Final = "contradicted_labels"


def suspects_of(document: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the suspicious training rows of a job's document: `text` (its beginning), `label` and `likelier`."""
    warnings = mappings(mapping(document.get("dataset")).get("warnings"))
    return [
        example for warning in warnings if warning.get("code") == _CODE for example in mappings(warning.get("examples"))
    ]


def labels_of(document: Mapping[str, Any]) -> list[Any]:
    """Return the labels that a row may get, in the order of the job's document."""
    return [mapping(entry).get("label") for entry in listing(mapping(document.get("dataset")).get("labels"))]


def relabeled(services: Services, job: Job, document: Mapping[str, Any], picked: Sequence[int | None]) -> Dataset:
    """Return the job's dataset with other labels for some suspicious rows.

    Args:
        document: the job's document, with its suspects.
        picked: for each suspect, the index of its new label in `labels_of`; None leaves the row unchanged.

    Raises:
        InputError: nothing would change, the form does not fit the job, or a suspect's beginning matches several texts.
        ConflictError: the rows of the dataset were deleted.
    """
    suspects, labels = suspects_of(document), labels_of(document)
    if len(picked) != len(suspects) or any(place is not None and place >= len(labels) for place in picked):
        raise InputError("suspects-form-outdated", field="label")
    changes = {
        (suspect["text"], json.dumps(suspect["label"])): labels[place]
        for suspect, place in zip(suspects, picked, strict=True)
        if place is not None
    }
    if not changes:
        raise InputError("no-label-changed", field="label")
    dataset = _rows_of(services, job)
    _require_unambiguous(dataset.train, changes)
    return replace(dataset, train=tuple(_changed(row, changes) for row in dataset.train))


def as_jsonl(rows: Iterable[Example], kind: Kind = "classification") -> str:
    """Return rows in a form that `onboard submit` reads."""
    return "".join(f"{json.dumps(_as_row(row, kind), ensure_ascii=False)}\n" for row in rows)


def corrected(services: Services, job: Job, document: Mapping[str, Any], picked: Sequence[int | None]) -> list[Example]:
    """Return the corrected rows, for `onboard add --replace`. Arguments and errors as for `relabeled`."""
    before = {(row.text_a, row.text_b, json.dumps(row.label)) for row in _rows_of(services, job).train}
    rows = relabeled(services, job, document, picked).train
    changed = [row for row in rows if (row.text_a, row.text_b, json.dumps(row.label)) not in before]
    return list(dict.fromkeys(changed))


def _rows_of(services: Services, job: Job) -> Dataset:
    from onboard.versions.trained_rows import read_snapshot

    if not job.spec.dataset:
        raise ConflictError("job-rows-deleted", job=job.id)
    return load(read_snapshot(services, job.spec.dataset))


def _require_unambiguous(rows: Iterable[Example], changes: Mapping[tuple[str, str], Any]) -> None:
    texts: dict[tuple[str, str], set[tuple[str, str | None]]] = {}
    for row in rows:
        if (key := _key(row)) in changes:
            texts.setdefault(key, set()).add((row.text_a, row.text_b))
    for (shown, _), meant in texts.items():
        if len(meant) > 1:
            raise InputError("row-ambiguous", field="label", rows=len(meant), shown=shown)  # fmt: skip


def _changed(row: Example, changes: Mapping[tuple[str, str], Any]) -> Example:
    key = _key(row)
    return replace(row, label=changes[key]) if key in changes else row


def _key(row: Example) -> tuple[str, str]:
    shown = preview_texts([row.text_a] if row.text_b is None else [row.text_a, row.text_b])
    return shown, json.dumps(row.label)


def _as_row(row: Example, kind: Kind) -> dict[str, Any]:
    texts = {"text": row.text_a} if row.text_b is None else {"text_a": row.text_a, "text_b": row.text_b}
    if kind == MULTILABEL:
        return {**texts, "labels": list(labels_in(row.label))}
    return {**texts, "label": row.label}
