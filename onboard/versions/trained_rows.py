"""Which rows a version knows: those that trained it, its ancestors, or the hypernetwork that any of them stands under.

On such rows it would look better than it is, so it is never measured on them.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from functools import lru_cache

import numpy as np

from onboard.bases import Base
from onboard.data.hashes import row_hashes, unpack_hashes
from onboard.data.snapshot import load as load_snapshot
from onboard.data.splits import holdout, split_as
from onboard.domain.dataset import Dataset
from onboard.domain.names import Reference
from onboard.domain.task import FIRST_HYPERNETWORK, EmbeddingVersion
from onboard.errors import DamagedError, NotFoundError
from onboard.probe.candidates import NOTHING, in_sorted
from onboard.registry.bases import BaseRepository
from onboard.registry.jobs import JobRepository
from onboard.registry.services import Services
from onboard.registry.snapshots import SnapshotRepository
from onboard.registry.versions import VersionRepository


def read_snapshot(services: Services, digest: str) -> bytes:
    """The bytes of a stored dataset. Raises NotFoundError (none was stored), DamagedError (its bytes are gone, too)."""
    with services.database.read() as session:
        record = SnapshotRepository(session).get(digest)
    return services.read(record.artifact)


def made_of_rows(services: Services, version: EmbeddingVersion) -> bool:
    """Whether labeled rows made a version, not its labels alone; where its dataset is not known, rows did."""
    try:
        with services.database.read() as session:
            return bool(SnapshotRepository(session).get(version.dataset_digest).rows["train"])
    except NotFoundError:
        return True


def dataset_of(services: Services, version: EmbeddingVersion) -> Dataset:
    """A version's dataset, split as it was when the version was trained.

    Which rows were held out stands in the version. Of one from before that was kept, today's rule says it, by its seed.

    Raises:
        NotFoundError, DamagedError: as of `read_snapshot`.
    """
    stored = load_snapshot(read_snapshot(services, version.dataset_digest))
    if version.held_out is not None:
        return split_as(stored, version.held_out)
    return holdout(stored, version.seeds[0]) if version.seeds else stored


def head_rows(services: Services, base: Base, version: int, *, exactly: bool = False) -> np.ndarray:
    """Sorted hashes of the rows that trained this version of the base's hypernetwork, or one that it descends from.

    Args:
        exactly: without the rows that were held out of the tuning; else all rows that were submitted to train on.

    Raises:
        NotFoundError: the base has no such version.
    """
    return _with_those_of_the_base(base, TrainedRows(services, base).tuning(version, exactly=exactly))


class TrainedRows:
    """Looks up which rows a version knows; what it has found it keeps.

    Args:
        services: where the versions lie.
        base: that they belong to.
    """

    def __init__(self, services: Services, base: Base) -> None:
        self._services, self._base = services, base
        self._tuning = lru_cache(maxsize=None)(self._tuned_on)

    def of(self, version: EmbeddingVersion, *, exactly: bool = False) -> np.ndarray:
        """Sorted hashes of all rows that this version knows, those that trained the base too; as of `own`."""
        return _with_those_of_the_base(self._base, self.own(version, exactly=exactly))

    def own(self, version: EmbeddingVersion, *, exactly: bool = False) -> np.ndarray:
        """Sorted hashes of the rows that trained this version or its line of parents, or that tuned what these need.

        Args:
            version: a published version.
            exactly: without the rows that were held out of the training (the datasets are read for it); else all rows
                that were submitted to train on.
        """
        known, waiting, seen = [NOTHING], [version], set[str]()
        while waiting:
            present = waiting.pop()
            if present.reference in seen:
                continue
            seen.add(present.reference)
            known += [
                self.tuning(hypernetwork, exactly=exactly)
                for hypernetwork in {present.origin, present.hypernetwork_version}
            ]
            if not present.dataset_digest:
                continue
            known.append(self._trained_on(present.dataset_digest, present if exactly else None))
            waiting += self._versions(present.parents)
        return np.unique(np.concatenate(known))

    def of_start(self, names: Iterable[str]) -> np.ndarray:
        """Hashes of the rows that trained the embeddings of these names; exactly, as of `own`.

        A deleted version has no rows left to compare with, and what belongs to no task knows none.
        """
        return np.concatenate([NOTHING, *(self.own(version, exactly=True) for version in self._versions(names))])

    def tuning(self, version: int, *, exactly: bool = False) -> np.ndarray:
        """Sorted hashes of the rows that tuned this hypernetwork version or one that it descends from; as of `own`.

        Raises:
            NotFoundError: the base has no such version.
        """
        return self._tuning(version, exactly)

    def known_to_some(self, versions: set[int]) -> np.ndarray:
        """Sorted hashes of rows that some of these hypernetwork versions were tuned on and some were not.

        They are no evidence for or against a move from one of them to another. As of `tuning`, exactly.
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
        known = [NOTHING]
        for dataset, by in zip(datasets, published, strict=True):
            try:
                known.append(self._trained_on(dataset, by))
            except NotFoundError:  # its task was deleted, and its rows with it: nothing is left to compare with
                continue
        return np.unique(np.concatenate(known))

    def _trained_on(self, digest: str, version: EmbeddingVersion | None) -> np.ndarray:
        """Hashes of a dataset's training rows, without those that were held out of this version if one is given.

        Where the rows are lost, and their hashes are not, none is taken for held out; nor where the version is gone.
        """
        if version is not None:
            with suppress(DamagedError):
                return np.array(row_hashes(dataset_of(self._services, version).train), dtype=np.int64)
        with self._services.database.read() as session:
            record = SnapshotRepository(session).get(digest)
        return unpack_hashes(self._services.read(record.row_hashes))

    def _versions(self, names: Iterable[str]) -> list[EmbeddingVersion]:
        """Those of the names that are versions', and not deleted: a deleted one has no rows left to compare with."""
        references = [Reference.parse(name) for name in names if "@" in name]
        numbers = [(reference.task, reference.version) for reference in references if reference.version is not None]
        with self._services.database.read() as session:
            repository = VersionRepository(session)
            return [version for number in numbers if (version := repository.living(*number)) is not None]


def _with_those_of_the_base(base: Base, known: np.ndarray) -> np.ndarray:
    fresh = known[~in_sorted(known, base.known_rows)]  # few; the base's are many, and in order
    return np.insert(base.known_rows, np.searchsorted(base.known_rows, fresh), fresh)
