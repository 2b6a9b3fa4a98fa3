"""The candidates of the probe: each task's latest version under the head, anchors, fingerprint, mean and random."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from onboard.bases import Base
from onboard.data.hashes import row_hashes, unpack_hashes
from onboard.data.snapshot import load as load_snapshot
from onboard.data.splits import holdout
from onboard.domain.names import Reference
from onboard.domain.task import EmbeddingVersion
from onboard.embedding import unpack_embedding
from onboard.errors import InputError, NotFoundError
from onboard.probe.candidates import FINGERPRINT, Candidate, mean_candidate, random_candidate
from onboard.registry.snapshots import SnapshotRepository
from onboard.registry.versions import VersionRepository
from onboard.services import Services
from onboard.workbench import read_snapshot

_NEAREST: Final = 12  # anchors that are measured, where fingerprints can tell which


def collect_candidates(
    services: Services, base: Base, head: int, seed: int, fingerprint: np.ndarray | None = None
) -> list[Candidate]:
    """Everything that a new task could start from.

    Args:
        services: where the learned tasks lie.
        base: that the task is learned on.
        head: version of the hypernetwork.
        seed: of `random`.
        fingerprint: of the new task (t,), where the base has fingerprints.
    """
    with services.database.read() as session:
        repository = VersionRepository(session)
        of_task = {version.task: version for version in repository.list(base_digest=base.digest)}  # the newest
        of_task |= {version.task: version for version in repository.list(base_digest=base.digest, latest_only=True)}
    versions = [of_task[task] for task in sorted(of_task)]
    trained = TrainedRows(services, base)
    found = [_candidate(services, version, trained) for version in versions if version.hypernetwork_version <= head]
    extra = shipped_candidates(base, [candidate.z for candidate in found], seed, fingerprint)
    return [*found, *(replace(each, trained_rows=trained.of_head) for each in extra)]


def shipped_candidates(
    base: Base, learned: Sequence[np.ndarray], seed: int, fingerprint: np.ndarray | None
) -> list[Candidate]:
    """What stands beside the tasks: anchors, the new task's fingerprint, random and the mean.

    Args:
        base: that the task is learned on.
        learned: embeddings of tasks (t,); they count in the mean, as do all anchors.
        seed: of `random`.
        fingerprint: of the new task (t,): only the anchors nearest to it are worth a measurement. None takes them all.
    """
    anchors = {anchor.name: anchor for anchor in base.anchors}
    names: Sequence[str] = list(anchors)
    if fingerprint is not None and base.fingerprints is not None:
        names = base.fingerprints.nearest(fingerprint, names, _NEAREST)
    found = [Candidate(name, base.embeddings[name]) for name in names]
    if fingerprint is not None:
        found.append(Candidate(FINGERPRINT, fingerprint))
    found.append(random_candidate(int(base.document["task_embedding_size"]), seed))
    everything = [*learned, *(base.embeddings[name] for name in anchors)]
    return [*found, *([mean_candidate(everything)] if everything else [])]


def named_candidate(candidates: Sequence[Candidate], services: Services, base: Base, init: str) -> Candidate:
    """The candidate that `--init` names: `random`, `mean`, `fingerprint`, an anchor, or TASK[@REF].

    Raises:
        InputError: there is none.
    """
    for candidate in candidates:
        if candidate.embedding == init:
            return candidate
    try:
        with services.database.read() as session:
            version = VersionRepository(session).resolve(Reference.parse(init))
    except NotFoundError as error:
        raise InputError(
            f"There is no embedding {init!r} to start from.", "--init auto, or: onboard tasks list"
        ) from error
    for candidate in candidates:
        if candidate.embedding == version.reference:
            return candidate
    return _candidate(services, version, TrainedRows(services, base))


class TrainedRows:
    """Which rows a candidate knows: its own, its ancestors', and those that trained the head."""

    def __init__(self, services: Services, base: Base) -> None:
        self._services = services
        sources = list(base.trained_rows.values())
        self.of_head = np.unique(np.concatenate(sources)) if sources else np.empty(0, dtype=np.int64)

    def of(self, version: EmbeddingVersion, *, exactly: bool = False) -> np.ndarray:
        """Sorted hashes of the rows that trained this version, its line of parents, or the head.

        Args:
            version: a published version.
            exactly: without the rows that were held out of the training (the datasets are read for it); else all rows
                that were submitted to train on.
        """
        known = [self.of_head]
        present: EmbeddingVersion | None = version
        while present is not None and present.dataset_digest:
            known.append(self._held_in(present) if exactly else self._submitted(present))
            present = self._parent(present)
        return np.unique(np.concatenate(known))

    def _submitted(self, version: EmbeddingVersion) -> np.ndarray:
        with self._services.database.read() as session:
            record = SnapshotRepository(session).get(version.dataset_digest)
        return unpack_hashes(self._services.read(record.row_hashes))

    def _held_in(self, version: EmbeddingVersion) -> np.ndarray:
        if not version.seeds:
            return self._submitted(version)
        dataset = load_snapshot(read_snapshot(self._services, version.dataset_digest))
        return np.array(row_hashes(holdout(dataset, version.seeds[0]).train), dtype=np.int64)

    def _parent(self, version: EmbeddingVersion) -> EmbeddingVersion | None:
        if "@" not in version.parent:
            return None
        try:
            with self._services.database.read() as session:
                return VersionRepository(session).resolve(version.parent)
        except NotFoundError:
            return None  # a deleted parent has no rows left to compare with


def _candidate(services: Services, version: EmbeddingVersion, trained: TrainedRows) -> Candidate:
    z = unpack_embedding(services.read(version.artifact))
    ordered = version.task_kind == "regression"
    return Candidate(version.reference, z, version.words, ordered, trained.of(version))
