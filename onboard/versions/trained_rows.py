"""The rows that a version was trained on, directly or through its ancestors or their hypernetworks.

Metrics on such rows would be too optimistic, so they are excluded from every measurement.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from functools import lru_cache

import numpy as np

from onboard.bases import Base
from onboard.data.hashes import merged, row_hashes, unpack_hashes
from onboard.data.snapshot import load as load_snapshot
from onboard.data.splits import holdout, split_as
from onboard.domain.dataset import Dataset
from onboard.domain.names import Reference
from onboard.domain.task import FIRST_HYPERNETWORK, EmbeddingVersion
from onboard.errors import DamagedError, NotFoundError
from onboard.probe.candidates import NOTHING
from onboard.registry.bases import BaseRepository
from onboard.registry.jobs import JobRepository
from onboard.registry.services import Services
from onboard.registry.snapshots import SnapshotRepository
from onboard.registry.versions import VersionRepository


def read_snapshot(services: Services, digest: str) -> bytes:
    """Return the bytes of a stored dataset. Raises NotFoundError (never stored), DamagedError (bytes missing)."""
    with services.database.read() as session:
        record = SnapshotRepository(session).get(digest)
    return services.read(record.artifact)


def made_of_rows(services: Services, version: EmbeddingVersion) -> bool:
    """Return whether labeled rows made a version, rather than its labels alone; True if its dataset is unknown."""
    try:
        with services.database.read() as session:
            return bool(SnapshotRepository(session).get(version.dataset_digest).rows["train"])
    except NotFoundError:
        return True


def dataset_of(services: Services, version: EmbeddingVersion) -> Dataset:
    """Return a version's dataset, split as in its training.

    The version records the held-out rows. For versions of earlier releases, the current rule and the version's seed
    determine them.

    Raises:
        NotFoundError, DamagedError: as in `read_snapshot`.
    """
    stored = load_snapshot(read_snapshot(services, version.dataset_digest))
    if version.held_out is not None:
        return split_as(stored, version.held_out)
    return holdout(stored, version.seeds[0]) if version.seeds else stored


def head_rows(services: Services, base: Base, version: int, *, exactly: bool = False) -> np.ndarray:
    """Return sorted hashes of the rows that trained a hypernetwork version of the base or its ancestors.

    Args:
        exactly: without rows that were held out of the tuning; else all submitted training rows.

    Raises:
        NotFoundError: the base has no such version.
    """
    return _with_those_of_the_base(base, TrainedRows(services, base).tuning(version, exactly=exactly))


class TrainedRows:
    """Looks up the rows that versions were trained on, and caches them."""

    def __init__(self, services: Services, base: Base) -> None:
        self._services, self._base = services, base
        self._tuning = lru_cache(maxsize=None)(self._tuned_on)

    def of(self, version: EmbeddingVersion, *, exactly: bool = False) -> np.ndarray:
        """Return sorted hashes of all rows that trained this version, including the base's; `exactly` as in `own`."""
        return _with_those_of_the_base(self._base, self.own(version, exactly=exactly))

    def own(self, version: EmbeddingVersion, *, exactly: bool = False) -> np.ndarray:
        """Return sorted hashes of rows that trained this version or its ancestors, or that tuned their hypernetworks.

        Args:
            exactly: without rows that were held out of the training (this reads the datasets); else all submitted
                training rows.
        """
        hashes, waiting, visited = [NOTHING], [version], set[str]()
        while waiting:
            current = waiting.pop()
            if current.reference in visited:
                continue
            visited.add(current.reference)
            hashes += [
                self.tuning(hypernetwork, exactly=exactly)
                for hypernetwork in {current.origin, current.hypernetwork_version}
            ]
            if not current.dataset_digest:
                continue
            hashes.append(self._trained_on(current.dataset_digest, current if exactly else None))
            waiting += self._versions(current.parents)
        return merged(hashes)

    def of_start(self, names: Iterable[str]) -> np.ndarray:
        """Return sorted hashes of the rows that trained the embeddings with these names; exactly, as in `own`.

        Deleted versions and names without a task have no rows.
        """
        return merged(self.own(version, exactly=True) for version in self._versions(names))

    def tuning(self, version: int, *, exactly: bool = False) -> np.ndarray:
        """Return sorted hashes of the rows that tuned this hypernetwork version or its ancestors; `exactly` as in
        `own`.

        Raises:
            NotFoundError: the base has no such version.
        """
        return self._tuning(version, exactly)

    def known_to_some(self, versions: set[int]) -> np.ndarray:
        """Return sorted hashes of rows that some of these hypernetwork versions were tuned on and some were not.

        They are not evidence for or against a move from one of them to another. As in `tuning`, exactly.
        """
        rows, times = np.unique(
            np.concatenate([self.tuning(version, exactly=True) for version in versions]), return_counts=True
        )
        rare: np.ndarray = rows[times < len(versions)]
        return rare

    def _tuned_on(self, version: int, exactly: bool) -> np.ndarray:
        if version == FIRST_HYPERNETWORK:
            return NOTHING
        with self._services.database.read() as session:
            line = BaseRepository(session).line(self._base.digest, version)
            jobs = [hypernetwork.job for hypernetwork in line if hypernetwork.job is not None]
            datasets = [JobRepository(session).get(job).spec.dataset for job in jobs]
            published = [VersionRepository(session).of_job(job) if exactly else None for job in jobs]
        hashes = [NOTHING]
        for dataset, by in zip(datasets, published, strict=True):
            try:
                hashes.append(self._trained_on(dataset, by))
            except NotFoundError:  # its task was deleted, including its rows
                continue
        return merged(hashes)

    def _trained_on(self, digest: str, version: EmbeddingVersion | None) -> np.ndarray:
        """Return hashes of a dataset's training rows, without those held out of the given version.

        If the rows or the version are gone and only hashes are left, held-out rows are included.
        """
        if version is not None:
            with suppress(DamagedError):
                return np.array(row_hashes(dataset_of(self._services, version).train), dtype=np.int64)
        with self._services.database.read() as session:
            record = SnapshotRepository(session).get(digest)
        return unpack_hashes(self._services.read(record.row_hashes))

    def _versions(self, names: Iterable[str]) -> list[EmbeddingVersion]:
        """Return the existing versions among the names. Deleted versions have no rows left to compare with."""
        references = [Reference.parse(name) for name in names if "@" in name]
        numbers = [(reference.task, reference.version) for reference in references if reference.version is not None]
        with self._services.database.read() as session:
            repository = VersionRepository(session)
            return [version for number in numbers if (version := repository.living(*number)) is not None]


def _with_those_of_the_base(base: Base, known: np.ndarray) -> np.ndarray:
    return merged((base.known_rows, known))
