"""Use case: a trained embedding becomes an immutable version, in one transaction with the end of its job."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from onboard.data.verbaliser import words_finding
from onboard.domain.dataset import label_key
from onboard.domain.job import Stage
from onboard.domain.names import LATEST, Reference
from onboard.domain.task import EmbeddingVersion, Task
from onboard.embedding import embedding_digest, embedding_facts, pack_embedding
from onboard.errors import NotFoundError, PinMismatchError, PreconditionFailedError
from onboard.judge import Judged
from onboard.registry.aliases import AliasRepository
from onboard.registry.bases import BaseRepository
from onboard.registry.claims import ClaimRepository
from onboard.registry.versions import VersionRepository
from onboard.version import code_version

if TYPE_CHECKING:
    from onboard.pipeline import Output, Run


def publish(attempt: Run, probed: Output, trained: Output, found: Output) -> EmbeddingVersion:
    """Store the tensors, then, fenced by the attempt: insert the version, move `latest`, end the job.

    Raises:
        FencedError: another attempt owns the job.
        PinMismatchError: the base's head moved since the job began.
    """
    started = time.monotonic()
    draft = _draft(attempt, probed, trained, found)
    z = np.array(trained["z"], dtype=np.float32)
    with attempt.services.database.read() as session:
        hypernetwork = BaseRepository(session).hypernetwork(attempt.base.digest, attempt.base.head)
    while True:
        with attempt.services.database.read() as session:
            number = VersionRepository(session).next_number(draft.task)
            present = AliasRepository(session).find(draft.task, LATEST) or 0
        found = _judged_against_present(attempt, probed, trained, found)  # after `present` was read, which must hold
        packed = pack_embedding(z, embedding_facts(replace(draft, version=number), hypernetwork.digest))
        numbered = replace(draft, artifact=attempt.services.store(packed, "embedding"))
        attempt.seconds[Stage.PUBLISH.value] = round(time.monotonic() - started, 3)
        try:
            return _commit(attempt, numbered, number, present, result_document(attempt, draft, probed, trained, found))
        except (_NumberTakenError, PreconditionFailedError):
            continue  # another job of this task was published in between, or `latest` moved: look again


class _NumberTakenError(Exception):
    """The version number that the bytes carry went to another job; the transaction is rolled back."""


def _judged_against_present(attempt: Run, probed: Output, trained: Output, found: Output) -> Output:
    """What was found, with a verdict about what `latest` means now: it may have moved since, or long ago in a retry."""
    with attempt.services.database.read() as session:
        try:
            present = VersionRepository(session).resolve(Reference(attempt.job.spec.task)).reference
        except NotFoundError:
            present = None
    if found["latest"].get("present") == present:
        return found
    judged = Judged(attempt.bench, attempt.job.spec, probed, trained, attempt.progress)
    return {**found, "latest": judged.against_present(attempt.services, found["weak"])}


def _commit(
    attempt: Run, draft: EmbeddingVersion, number: int, present: int, result: dict[str, Any]
) -> EmbeddingVersion:
    """Raises _NumberTakenError, and PreconditionFailedError when `latest` is to move and is not `present` any more."""
    dataset, spec, moved = attempt.bench.dataset, attempt.job.spec, bool(result["latest"]["moved"])
    task = Task(draft.task, dataset.kind, dataset.labels, draft.words, dataset.low, dataset.high)
    with attempt.services.database.write() as session:
        head = BaseRepository(session).get(attempt.base.digest).head
        if head != attempt.base.head:
            raise PinMismatchError(
                f"The hypernetwork moved from version {attempt.base.head} to {head} while the job ran.",
                f"onboard jobs retry {attempt.job.id}",
            )
        ClaimRepository(session).append(
            attempt.job.id,
            attempt.job.attempt,
            "stage_finished",
            "publish finished",
            stage=Stage.PUBLISH,
            seconds=attempt.seconds[Stage.PUBLISH.value],
            numbers={"version": number, "latest": moved},
        )
        published = VersionRepository(session).publish(
            draft,
            task,
            attempt=attempt.job.attempt,
            result=result,
            move_latest=moved,
            present=present,
            new_labels=spec.new_labels,
        )
        if published.version != number:
            raise _NumberTakenError
    return published


def _draft(attempt: Run, probed: Output, trained: Output, found: Output) -> EmbeddingVersion:
    spec, dataset = attempt.job.spec, attempt.bench.dataset
    z = np.array(trained["z"], dtype=np.float32)
    return EmbeddingVersion(
        task=spec.task,
        kind="onboarded",
        artifact="",
        embedding_digest=embedding_digest(z),
        backbone_digest=attempt.base.backbone_digest,
        base_digest=attempt.base.digest,
        hypernetwork_version=attempt.base.head,
        dataset_digest=spec.dataset,
        parent=probed["init"]["chosen"],
        fingerprint=probed["fingerprint"],
        mixed_from=probed["init"]["weights"] or {},
        task_kind=dataset.kind,
        labels=dataset.labels,
        words=tuple(probed["words"]),
        code_version=code_version(),
        method=attempt.bench.base.method,
        seeds=(spec.seed,),
        low=dataset.low,
        high=dataset.high,
        metrics=found["metrics"],
        weak=found["weak"],
        job=attempt.job.id,
    )


def result_document(
    attempt: Run, draft: EmbeddingVersion, probed: Output, trained: Output, found: Output
) -> dict[str, Any]:
    """The job's result: the document of `submit --wait --json`, and what explains it (onboard/domain/report.py)."""
    spec = attempt.job.spec
    return {
        "job": attempt.job.id,
        "state": "succeeded",
        "task": spec.task,
        "version": None,
        "embedding_digest": draft.embedding_digest,
        "hypernetwork_version": draft.hypernetwork_version,
        "init": probed["init"],
        "metrics": found["metrics"],
        "guard": None,
        "seconds": attempt.seconds,
        "metric": found["metric"],
        "validation_kind": found["validation_kind"],
        "validation_reason": found["validation_reason"],
        "baselines": found["baselines"],
        "weak": found["weak"],
        "weak_reason": found["weak_reason"],
        "latest": found["latest"],
        "confusion": found["confusion"],
        "dataset": _dataset(attempt, draft, trained),
        "training": trained["training"],
        "more_rows": trained["more_rows"],
        "label_next": trained["label_next"],
        "halved": [
            {"stage": stage.value, **each}
            for stage, output in ((Stage.PROBE, probed), (Stage.TRAIN, trained), (Stage.EVALUATE, found))
            for each in output["halved"]
        ],
        "pins": {
            "backbone": draft.backbone_digest,
            "base": draft.base_digest,
            "hypernetwork_version": draft.hypernetwork_version,
            "dataset": draft.dataset_digest,
            "parent": draft.parent,
            "seeds": list(draft.seeds),
            "code": draft.code_version,
        },
    }


def _dataset(attempt: Run, draft: EmbeddingVersion, trained: Output) -> dict[str, Any]:
    dataset, report = attempt.bench.dataset, attempt.job.spec.options.get("dataset_report", {})
    counts: dict[str, int] = {}
    for row in dataset.train:
        counts[label_key(row.label)] = counts.get(label_key(row.label), 0) + 1
    labels = [
        {"label": label, "word": word, "count": counts.get(label_key(label), 0)}
        for label, word in zip(dataset.labels, draft.words, strict=False)
    ]
    words = words_finding(dataset.labels, attempt.bench.words) if dataset.labels else None
    rows = {"train": len(dataset.train), "validation": len(dataset.validation), "test": len(dataset.test)}
    return {
        "name": draft.task,
        "kind": dataset.kind,
        "pairs": dataset.pairs,
        "rows": rows,
        "labels": labels,
        "digest": draft.dataset_digest,
        "warnings": [*report.get("warnings", []), *([words.to_json()] if words else []), *trained["warnings"]],
    }
