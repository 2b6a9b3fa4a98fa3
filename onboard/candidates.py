"""The candidates of the probe: every task's latest version under the head, the base's anchors, the mean, and random."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from onboard.bases import Base
from onboard.data.hashes import unpack_hashes
from onboard.domain.names import Reference
from onboard.domain.task import EmbeddingVersion
from onboard.embedding import unpack_embedding
from onboard.errors import InputError, NotFoundError
from onboard.probe.candidates import Candidate, mean_candidate, random_candidate
from onboard.registry.snapshots import SnapshotRepository
from onboard.registry.versions import VersionRepository
from onboard.services import Services


def collect_candidates(services: Services, base: Base, head: int, seed: int) -> list[Candidate]:
    """Everything that a new task could start from, `random` and `mean` included."""
    with services.database.read() as session:
        versions = VersionRepository(session).list(base_digest=base.digest, latest_only=True)
    trained = TrainedRows(services, base)
    found = [_candidate(services, version, trained) for version in versions if version.hypernetwork_version <= head]
    found += [
        Candidate(anchor.name, base.embeddings[anchor.name], trained_rows=trained.of_head) for anchor in base.anchors
    ]
    size = int(base.document["task_embedding_size"])
    extra = [random_candidate(size, seed), *([mean_candidate(found)] if found else [])]
    return [*found, *(Candidate(each.embedding, each.z, trained_rows=trained.of_head) for each in extra)]


def named_candidate(candidates: Sequence[Candidate], services: Services, init: str) -> Candidate:
    """The candidate that `--init` names: `random`, `mean`, an anchor, or TASK[@REF].

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
    return _candidate(services, version, None)


class TrainedRows:
    """Which rows a candidate knows: its own, its ancestors', and those that trained the head."""

    def __init__(self, services: Services, base: Base) -> None:
        self._services = services
        sources = list(base.trained_rows.values())
        self.of_head = np.unique(np.concatenate(sources)) if sources else np.empty(0, dtype=np.int64)

    def of(self, version: EmbeddingVersion) -> np.ndarray:
        """Sorted hashes of the rows that trained this version, its line of parents, or the head."""
        known = [self.of_head]
        present: EmbeddingVersion | None = version
        while present is not None and present.dataset_digest:
            with self._services.database.read() as session:
                record = SnapshotRepository(session).get(present.dataset_digest)
            known.append(unpack_hashes(self._services.artifacts.get(record.row_hashes)))
            present = self._parent(present)
        return np.unique(np.concatenate(known))

    def _parent(self, version: EmbeddingVersion) -> EmbeddingVersion | None:
        if "@" not in version.parent:
            return None
        try:
            with self._services.database.read() as session:
                return VersionRepository(session).resolve(version.parent)
        except NotFoundError:
            return None  # a deleted parent has no rows left to compare with


def _candidate(services: Services, version: EmbeddingVersion, trained: TrainedRows | None) -> Candidate:
    z = unpack_embedding(services.artifacts.get(version.artifact))
    ordered = version.task_kind == "regression"
    if trained is None:
        return Candidate(version.reference, z, version.words, ordered)
    return Candidate(version.reference, z, version.words, ordered, trained.of(version))
