"""The tasks that a changed hypernetwork must not harm: every embedding in use, with the evidence to judge it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from onboard.bases import Base
from onboard.bases.load import load_engine
from onboard.data.hashes import in_sorted, row_hashes
from onboard.data.targets import targets_of
from onboard.domain.dataset import Example
from onboard.domain.task import BaseRecord, EmbeddingVersion, HypernetworkVersion, words_in_order
from onboard.errors import DamagedError, NotFoundError
from onboard.hypernetworks.engines import hypernetwork_at
from onboard.model.batch import LabelledRows
from onboard.model.engine import Engine
from onboard.model.protected import ProtectedTask
from onboard.registry.bases import BaseRepository
from onboard.registry.in_use import InUseRepository
from onboard.registry.services import Services
from onboard.storage.embedding import verified_embedding
from onboard.versions.trained_rows import dataset_of

MOST_ROWS: Final = 512  # held-out rows per task
MOST_TEXTS: Final = 128  # training texts, if there are too few rows

Identity = tuple[str, str, int]


def identity(version: EmbeddingVersion) -> Identity:
    """Return the identity for the guard: a task's embedding and its origin, the same for all carried versions."""
    return version.task, version.embedding_digest, version.origin


def in_use(services: Services, base: Base, *, without: Iterable[str] = ()) -> list[EmbeddingVersion]:
    """Return the versions that aliases point to; the newest of those with the same identity.

    Args:
        without: tasks to leave out.
    """
    left_out = set(without)
    with services.database.read() as session:
        versions = InUseRepository(session).versions(base.digest)
    return list({identity(version): version for version in versions if version.task not in left_out}.values())


def line_of(services: Services, base: BaseRecord) -> frozenset[int]:
    """Return the numbers of the base's head and its ancestors."""
    with services.database.read() as session:
        return frozenset(hypernetwork.version for hypernetwork in BaseRepository(session).line(base.digest, base.head))


def late(
    versions: Iterable[EmbeddingVersion],
    since: Mapping[str, float],
    line: Sequence[HypernetworkVersion],
    tuned_by: Mapping[int, str],
) -> set[str]:
    """Return references of versions that no guard checked when the head moved on from their hypernetwork.

    They were published afterwards, an alias moved back to them, or their own task moved the head to replace them
    although they are still in use.

    Args:
        since: when each came into use, by reference.
        line: the base's head and its ancestors.
        tuned_by: the task that tuned each of these, by number.
    """
    return {
        version.reference
        for version in versions
        if any(
            head.version > version.hypernetwork_version
            and (head.created_at <= since[version.reference] or tuned_by.get(head.version) == version.task)
            for head in line
        )
    }


def newcomers(
    versions: Sequence[EmbeddingVersion], considered: Collection[Identity], task: str, line: Collection[int]
) -> list[EmbeddingVersion]:
    """Return the versions in use that a guard has to check and has not considered, one per identity.

    Args:
        versions: versions in use on the base.
        considered: identities that the guard considered.
        task: the job's task; its earlier versions are being replaced.
        line: the ancestors of the job's hypernetwork version. An embedding under another hypernetwork was left behind
            when the head was reverted; it stays pinned there, so the head does not affect it.
    """
    by_identity = {
        identity(version): version
        for version in versions
        if version.task != task and (version.origin in line or version.hypernetwork_version in line)
    }
    return [version for key, version in by_identity.items() if key not in considered]


def protected(services: Services, base: Base, record: BaseRecord, task: str) -> list[EmbeddingVersion]:
    """Return the versions that a step from the base's head must not harm, see `newcomers`; `task` is being tuned."""
    return newcomers(in_use(services, base), (), task, line_of(services, record))


def protected_task(services: Services, base: Base, version: EmbeddingVersion) -> ProtectedTask:
    """Return a version with its embedding, without reading its dataset. Unreadable data is a trouble, which never
    passes.

    If its embedding cannot be read, z is zero and its hypernetwork is the base's first.
    """
    engine = load_engine(base, services.device)
    z = np.zeros(int(base.document["task_embedding_size"]), dtype=np.float32)
    task = ProtectedTask(version.reference, z, engine.trie(version.words), engine.hypernetwork)
    try:
        task = replace(task, z=verified_embedding(services.read(version.artifact), version))
    except DamagedError as error:
        return replace(task, trouble=f"Its embedding cannot be read: {error.outside.message}")
    try:
        return replace(task, reference=hypernetwork_at(services, base, version.origin, services.device))
    except DamagedError as error:
        return replace(task, trouble=f"The hypernetwork that it was learned under: {error.outside.message}")


def with_evidence(
    services: Services, base: Base, task: ProtectedTask, version: EmbeddingVersion, known: np.ndarray | None = None
) -> ProtectedTask:
    """Add held-out rows and training texts of the version, which are read from its snapshot.

    Args:
        task: the result of `protected_task`.
        known: sorted hashes of rows that the judged hypernetwork was trained on, which are excluded.
    """
    if task.trouble or not version.dataset_digest or not version.seeds:
        return task  # shipped sources have no snapshot here
    try:
        dataset = dataset_of(services, version)
    except (NotFoundError, DamagedError) as error:
        return replace(task, trouble=f"Its dataset cannot be read: {error.outside.message}")
    engine = load_engine(base, services.device)
    held_out, training_rows = _drawn(dataset.validation, MOST_ROWS, known), _drawn(dataset.train, MOST_TEXTS, known)
    return replace(
        task,
        trie=engine.trie(words_in_order(version, dataset.labels)),
        rows=LabelledRows(_encoded(engine, held_out), targets_of(dataset, held_out)) if held_out else None,
        texts=_encoded(engine, training_rows),
    )


def protected_with_evidence(
    services: Services, base: Base, version: EmbeddingVersion, known: np.ndarray | None = None
) -> ProtectedTask:
    """Return a version with its evidence; `known` as in `with_evidence`."""
    return with_evidence(services, base, protected_task(services, base, version), version, known)


def _drawn(rows: Sequence[Example], most: int, known: np.ndarray | None) -> list[Example]:
    """Return at most `most` rows that are not known: those with the smallest hashes, a fixed sample."""
    hashes = np.array(row_hashes(rows), dtype=np.int64)
    fresh = np.arange(len(rows)) if known is None else np.flatnonzero(~in_sorted(hashes, known))
    return [rows[row] for row in np.sort(fresh[np.argsort(hashes[fresh], kind="stable")[:most]])]


def _encoded(engine: Engine, rows: Sequence[Example]) -> list[list[int]]:
    return engine.encoder.encode([(row.text_a, row.text_b) for row in rows])
