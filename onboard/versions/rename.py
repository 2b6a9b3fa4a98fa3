"""Rename a label of a version: the same numbers and words as a new version."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from onboard.domain.dataset import Label, label_key
from onboard.domain.release import code_version
from onboard.domain.task import EmbeddingVersion, Task
from onboard.domain.webhook import PUBLISHED
from onboard.errors import DamagedError
from onboard.registry.audit import record
from onboard.registry.bases import BaseRepository
from onboard.registry.outbox import OutboxRepository
from onboard.registry.quotas import QuotaRepository
from onboard.registry.snapshots import SnapshotRepository
from onboard.registry.versions import VersionRepository, files_of, published_facts
from onboard.storage.embedding import as_strings, embedding_facts, read_metadata
from onboard.storage.weights import pack_weights

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from onboard.contract.changes import TaskChange
    from onboard.domain.label_change import LabelChange
    from onboard.domain.task import SnapshotRecord
    from onboard.registry.services import Services


class _NumberTakenError(Exception):
    """The version number in the stored file was taken by another version; the transaction is rolled back."""


def publish_renamed(
    services: Services,
    present: EmbeddingVersion,
    asked: LabelChange,
    snapshot: SnapshotRecord,
    change: TaskChange,
    unchanged: Callable[[Session], object],
    owner: str | None = None,
) -> EmbeddingVersion:
    """Publish a version with the same answers and a renamed label. No alias moves.

    Args:
        snapshot: the same rows with the new name.
        unchanged: raises an error if the task has changed; called in the publishing transaction.
        owner: owner that the stored bytes count for.

    Raises:
        QuotaError: the owner has reached its limit of bytes.
        DamagedError: the version's bytes are missing.
        StorageError: the new file cannot be stored.
    """
    content = services.read(present.artifact)
    draft = replace(
        present,
        kind="relabeled",
        dataset_digest=snapshot.digest,
        parent=present.reference,
        mixed_from={},
        labels=asked.after(present.labels),
        metrics=renamed_metrics(present.metrics, asked),
        provisional=False,
        code_version=code_version(),
        change=change.to_json(),
        job=None,
    )
    while True:
        with services.database.read() as session:
            digest = BaseRepository(session).hypernetwork(present.base_digest, present.hypernetwork_version).digest
            number = VersionRepository(session).next_number(present.task)
        facts = embedding_facts(replace(draft, version=number), digest)
        packed = _with_facts(content, facts)
        numbered = replace(draft, artifact=services.store(packed, "embedding" if draft.has_embedding else "weights"))
        try:
            return _commit(services, numbered, number, snapshot, unchanged, owner)
        except _NumberTakenError:
            continue


def renamed_metrics(metrics: Mapping[str, Any], asked: LabelChange) -> dict[str, Any]:
    """Return metrics by split, with the scores of labels under their new names."""
    return {split: _renamed(measured, asked) for split, measured in metrics.items()}


def _renamed(value: Any, asked: LabelChange) -> Any:
    """Rename labels in any part of a metrics document; labels are values of `label`."""
    if isinstance(value, dict):
        return {
            name: asked.become.get(label_key(part), part) if name == "label" and _is_label(part)
            else _renamed(part, asked)
            for name, part in value.items()
        }  # fmt: skip
    return [_renamed(part, asked) for part in value] if isinstance(value, list) else value


def _is_label(value: object) -> bool:
    return isinstance(value, Label)


def _with_facts(content: bytes, facts: Mapping[str, Any]) -> bytes:
    """Return the file of a version with other facts and the same numbers. Raises DamagedError."""
    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        return pack_weights(load(content), {**read_metadata(content), **as_strings(facts)})
    except (SafetensorError, ValueError, TypeError, json.JSONDecodeError) as error:
        raise DamagedError("version-file-unreadable") from error


def _commit(
    services: Services,
    draft: EmbeddingVersion,
    number: int,
    snapshot: SnapshotRecord,
    unchanged: Callable[[Session], object],
    owner: str | None,
) -> EmbeddingVersion:
    task = Task(draft.task, draft.task_kind, draft.labels, draft.words, draft.low, draft.high)
    with services.database.write() as session:
        unchanged(session)
        SnapshotRepository(session).add(snapshot)
        added = VersionRepository(session).add(draft, task, move_latest=False, new_labels=True)
        if added.version != number:
            raise _NumberTakenError
        QuotaRepository(session).admit_bytes(owner, [*snapshot.artifacts, *files_of(added)])
        OutboxRepository(session).add(PUBLISHED, published_facts(added))
        change: Mapping[str, Any] = draft.change or {}
        changed = {"change": change.get("action"), "labels": change.get("labels"), "to": change.get("to")}
        record(session, "task.labels", draft.task, version=number, **changed)
    return added
