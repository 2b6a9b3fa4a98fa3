"""The tasks that a changed hypernetwork must not harm: every embedding in use, and what its answers are judged by."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from onboard.bases import Base
from onboard.bases.load import load_engine
from onboard.data.hashes import row_hashes
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

MOST_ROWS: Final = 512  # held-out rows of a task that are read
MOST_TEXTS: Final = 128  # texts of its own, where there are too few rows

Identity = tuple[str, str, int]


def identity(version: EmbeddingVersion) -> Identity:
    """What a guard judges: a task's embedding and its origin, whichever of the versions that carry it is at hand."""
    return version.task, version.embedding_digest, version.origin


def in_use(services: Services, base: Base, *, without: Iterable[str] = ()) -> list[EmbeddingVersion]:
    """The versions that aliases name; of those with one identity only the newest.

    Args:
        services: where they lie.
        base: that they belong to.
        without: tasks to leave out.
    """
    left_out = set(without)
    with services.database.read() as session:
        versions = InUseRepository(session).versions(base.digest)
    return list({identity(version): version for version in versions if version.task not in left_out}.values())


def line_of(services: Services, base: BaseRecord) -> frozenset[int]:
    """The numbers of the base's head and of the hypernetwork versions that it descends from."""
    with services.database.read() as session:
        return frozenset(hypernetwork.version for hypernetwork in BaseRepository(session).line(base.digest, base.head))


def late(
    versions: Iterable[EmbeddingVersion],
    since: Mapping[str, float],
    line: Sequence[HypernetworkVersion],
    tuned_by: Mapping[int, str],
) -> set[str]:
    """References of those that no guard looked at when the head moved on from the hypernetwork that they are pinned to.

    They were published, or an alias was moved back to them, after that; or it was their own task that moved the head,
    to replace them, and they are in use all the same.

    Args:
        versions: in use on the base.
        since: when each came into use, by reference.
        line: the base's head and the hypernetwork versions that it descends from.
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
    """Those of the versions in use that a guard has to look at and did not know of, one an identity.

    Args:
        versions: in use on the base.
        considered: identities that the guard knew of.
        task: the job's own; its earlier versions are what it replaces.
        line: the hypernetwork versions that the job's own descends from. An embedding that stands under another one
            was left behind when the head was reverted: it stays where it is pinned, whatever becomes of the head.
    """
    by_identity = {
        identity(version): version
        for version in versions
        if version.task != task and (version.origin in line or version.hypernetwork_version in line)
    }
    return [version for key, version in by_identity.items() if key not in considered]


def protected(services: Services, base: Base, record: BaseRecord, task: str) -> list[EmbeddingVersion]:
    """What a step from the base's head must not harm, see `newcomers`; `task` is the one that tunes."""
    return newcomers(in_use(services, base), (), task, line_of(services, record))


def protected_task(services: Services, base: Base, version: EmbeddingVersion) -> ProtectedTask:
    """A version with its numbers; no dataset is read. What cannot be read is a trouble, which is no pass.

    Its z is nothing but zeros where it cannot be read, and its hypernetwork the base's first.
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
    """The same with held-out rows and texts of its own: its snapshot is read here.

    Args:
        services: where the snapshot lies.
        base: that it belongs to.
        task: the version as `protected_task` gives it.
        version: the version.
        known: sorted hashes of rows that the hypernetwork to be judged was trained on: they are no evidence.
    """
    if task.trouble or not version.dataset_digest or not version.seeds:
        return task  # a shipped source never had a snapshot here
    try:
        dataset = dataset_of(services, version)
    except (NotFoundError, DamagedError) as error:
        return replace(task, trouble=f"Its dataset cannot be read: {error.outside.message}")
    engine = load_engine(base, services.device)
    held, own = _drawn(dataset.validation, MOST_ROWS, known), _drawn(dataset.train, MOST_TEXTS, known)
    return replace(
        task,
        trie=engine.trie(words_in_order(version, dataset.labels)),
        rows=LabelledRows(_encoded(engine, held), targets_of(dataset, held)) if held else None,
        texts=_encoded(engine, own),
    )


def protected_with_evidence(
    services: Services, base: Base, version: EmbeddingVersion, known: np.ndarray | None = None
) -> ProtectedTask:
    """A version with its evidence; `known` as of `with_evidence`."""
    return with_evidence(services, base, protected_task(services, base, version), version, known)


def _drawn(rows: Sequence[Example], most: int, known: np.ndarray | None) -> list[Example]:
    """Rows that are not known, `most` at most: those with the smallest hashes, always the same ones."""
    hashes = np.array(row_hashes(rows), dtype=np.int64)
    fresh = np.arange(len(rows)) if known is None else np.flatnonzero(~np.isin(hashes, known))
    return [rows[row] for row in np.sort(fresh[np.argsort(hashes[fresh], kind="stable")[:most]])]


def _encoded(engine: Engine, rows: Sequence[Example]) -> list[list[int]]:
    return engine.encoder.encode([(row.text_a, row.text_b) for row in rows])
