"""Use case: the rows of a job's dataset with other labels for those that look mislabeled, to be learned again."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from onboard.data.previews import preview_texts
from onboard.data.snapshot import load
from onboard.domain.dataset import Dataset, Example, Kind
from onboard.domain.job import Job
from onboard.domain.label_set import MULTILABEL, labels_in
from onboard.domain.submission import Submission
from onboard.errors import ConflictError, InputError
from onboard.registry.services import Services
from onboard.report.reading import listing, mapping, mappings

_CODE: Final = "contradicted_labels"
_SPLITS: Final = {"train": "dataset", "validation": "validation", "test": "test"}  # and the field of a submission


def suspects_of(document: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The training rows that look mislabeled by a job's document: `text` (its beginning), `label` and `likelier`."""
    warnings = mappings(mapping(document.get("dataset")).get("warnings"))
    return [
        example for warning in warnings if warning.get("code") == _CODE for example in mappings(warning.get("examples"))
    ]


def labels_of(document: Mapping[str, Any]) -> list[Any]:
    """The labels that a row may get, in the order of the job's document."""
    return [mapping(entry).get("label") for entry in listing(mapping(document.get("dataset")).get("labels"))]


def relabeled(services: Services, job: Job, document: Mapping[str, Any], picked: Sequence[int | None]) -> Dataset:
    """The job's dataset, with other labels for some of the rows that look mislabeled.

    Args:
        document: the job's, with its suspects.
        picked: for each suspect the place of its label in `labels_of`; None leaves the row as it is.

    Raises:
        InputError: nothing is to change, the form does not fit the job, or a suspect's beginning names several texts.
        ConflictError: the rows of the dataset are gone.
    """
    suspects, labels = suspects_of(document), labels_of(document)
    if len(picked) != len(suspects) or any(place is not None and place >= len(labels) for place in picked):
        raise InputError("The form does not fit this job's suspects.", "Load the page of the job again.", field="label")
    changes = {
        (suspect["text"], json.dumps(suspect["label"])): labels[place]
        for suspect, place in zip(suspects, picked, strict=True)
        if place is not None
    }
    if not changes:
        raise InputError("No label was changed.", "Choose another label for at least one row.", field="label")
    dataset = _rows_of(services, job)
    _require_unambiguous(dataset.train, changes)
    return replace(dataset, train=tuple(_changed(row, changes) for row in dataset.train))


def written(dataset: Dataset, folder: Path, name: str) -> dict[str, Path]:
    """Write each split that has rows as JSONL; returns the files by their fields of a submission."""
    files = {}
    for split, field in _SPLITS.items():
        rows: Sequence[Example] = getattr(dataset, split)
        if rows:
            files[field] = folder / (f"{name}.jsonl" if split == "train" else f"{name}-{split}.jsonl")
            files[field].write_text(as_jsonl(rows, dataset.kind), encoding="utf-8")
    return files


def as_jsonl(rows: Iterable[Example], kind: Kind = "classification") -> str:
    """Rows as `onboard submit` takes them."""
    return "".join(f"{json.dumps(_as_row(row, kind), ensure_ascii=False)}\n" for row in rows)


def again(job: Job, files: Mapping[str, Path]) -> Submission:
    """A submission of these files as the job was asked for; its start and its seed stay."""
    spec = job.spec
    return Submission(
        dataset=files["dataset"],
        validation=files.get("validation"),
        test=files.get("test"),
        task=spec.task,
        init=spec.init,
        tune_hypernetwork=spec.tune_hypernetwork,
        method=spec.method,
        metric=spec.metric,
        seed=spec.seed,
        base=spec.base,
    )


def _rows_of(services: Services, job: Job) -> Dataset:
    from onboard.versions.trained_rows import read_snapshot

    if not job.spec.dataset:
        raise ConflictError(
            f"The rows of job {job.id} were deleted.", "Submit the corrected file: onboard submit FILE", job=job.id
        )
    return load(read_snapshot(services, job.spec.dataset))


def _require_unambiguous(rows: Iterable[Example], changes: Mapping[tuple[str, str], Any]) -> None:
    texts: dict[tuple[str, str], set[tuple[str, str | None]]] = {}
    for row in rows:
        if (key := _key(row)) in changes:
            texts.setdefault(key, set()).add((row.text_a, row.text_b))
    for (shown, _), meant in texts.items():
        if len(meant) > 1:
            raise InputError(
                f"{len(meant)} rows begin with “{shown}”.", "Correct them in your file and submit it again.",
                field="label",
            )  # fmt: skip


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
