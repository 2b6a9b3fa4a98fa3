"""The candidates of the probe: each task's aliased versions under the head, anchors, fingerprint, mean and random."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from onboard.bases import Base
from onboard.bases.fingerprints import unpack_fingerprint
from onboard.data.hashes import row_hashes, unpack_hashes
from onboard.data.snapshot import load as load_snapshot
from onboard.data.splits import holdout
from onboard.domain.names import Reference
from onboard.domain.task import EmbeddingVersion
from onboard.embedding import unpack_embedding
from onboard.errors import InputError, NotFoundError
from onboard.probe.candidates import FINGERPRINT, MEAN, Candidate, in_sorted, mean_candidate, random_candidate
from onboard.probe.prefilter import prefilter
from onboard.registry.snapshots import SnapshotRepository
from onboard.registry.versions import Startable, VersionRepository
from onboard.services import Services
from onboard.workbench import read_snapshot

_NEAREST: Final = 12  # anchors that are measured, where fingerprints can tell which


@dataclass(frozen=True)
class Collected:
    """What a new task could start from.

    Args:
        candidates: those that are worth a measurement.
        considered: how many embeddings of tasks and anchors there are.
        kept: how many of them are among the candidates.
    """

    candidates: list[Candidate]
    considered: int
    kept: int


def collect_candidates(
    services: Services, base: Base, head: int, seed: int, fingerprint: np.ndarray | None = None
) -> Collected:
    """Everything that a new task could start from; where it is too much, what looks like the new task, and some others.

    Args:
        services: where the learned tasks lie.
        base: that the task is learned on.
        head: version of the hypernetwork.
        seed: of `random`.
        fingerprint: of the new task (t,), where the base has fingerprints; without it everything is taken.
    """
    with services.database.read() as session:
        repository = VersionRepository(session)
        known = repository.startable(base.digest, head)
        kept = known if fingerprint is None else _worth_measuring(base, known, fingerprint)
        versions = repository.published((each.task, each.version) for each in kept)
    trained = TrainedRows(services, base)
    found = [_candidate(services, version, trained) for version in versions]
    extra = shipped_candidates(base, [candidate.z for candidate in found], seed, fingerprint)
    anchors = {anchor.name for anchor in base.anchors}
    measured = len(found) + sum(each.embedding in anchors for each in extra)
    return Collected([*found, *extra], len(known) + len(anchors), measured)


def _worth_measuring(base: Base, known: Sequence[Startable], fingerprint: np.ndarray) -> list[Startable]:
    of_base = base.fingerprints.of if base.fingerprints is not None else {}
    fingerprints = [
        unpack_fingerprint(each.fingerprint) if each.fingerprint is not None else of_base.get(each.task)
        for each in known
    ]
    return [known[index] for index in prefilter(fingerprint, fingerprints)]


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


def named_candidate(
    services: Services, base: Base, head: int, seed: int, init: str, fingerprint: np.ndarray | None = None
) -> Candidate:
    """The candidate that `--init` names: `random`, `mean`, `fingerprint`, an anchor, or TASK[@REF].

    No other version is read, but for `mean`, which is made of the embeddings of all.

    Args:
        services, base, head, seed: as for `collect_candidates`.
        init: the name.
        fingerprint: of the new task (t,), where the base has fingerprints.

    Raises:
        InputError: there is none.
    """
    if init == MEAN:
        with services.database.read() as session:
            repository = VersionRepository(session)
            known = repository.startable(base.digest, head)
            versions = repository.published((each.task, each.version) for each in known)
        learned = [unpack_embedding(services.read(version.artifact)) for version in versions]
        return next(each for each in shipped_candidates(base, learned, seed, None) if each.embedding == MEAN)
    shipped = {each.embedding: each for each in shipped_candidates(base, (), seed, None)}
    if fingerprint is not None:
        shipped[FINGERPRINT] = Candidate(FINGERPRINT, fingerprint)
    if init in shipped:
        return shipped[init]
    try:
        with services.database.read() as session:
            version = VersionRepository(session).resolve(Reference.parse(init))
    except NotFoundError as error:
        raise InputError(
            f"There is no embedding {init!r} to start from.", "--init auto, or: onboard tasks list"
        ) from error
    return _candidate(services, version, TrainedRows(services, base))


class TrainedRows:
    """Which rows a version knows: its own, its ancestors', and those that trained the head."""

    def __init__(self, services: Services, base: Base) -> None:
        self._services, self._of_head = services, base.known_rows

    def of(self, version: EmbeddingVersion, *, exactly: bool = False) -> np.ndarray:
        """Sorted hashes of the rows that trained this version, its line of parents, or the head; as of `own`."""
        own = self.own(version, exactly=exactly)
        fresh = own[~in_sorted(own, self._of_head)]  # few; the head's are many, and in order
        return np.insert(self._of_head, np.searchsorted(self._of_head, fresh), fresh)

    def own(self, version: EmbeddingVersion, *, exactly: bool = False) -> np.ndarray:
        """Sorted hashes of the rows that trained this version or its line of parents.

        Args:
            version: a published version.
            exactly: without the rows that were held out of the training (the datasets are read for it); else all rows
                that were submitted to train on.
        """
        known, waiting, seen = [np.empty(0, dtype=np.int64)], [version], set[str]()
        while waiting:
            present = waiting.pop()
            if present.reference in seen or not present.dataset_digest:
                continue
            seen.add(present.reference)
            known.append(self._held_in(present) if exactly else self._submitted(present))
            waiting += self._parents(present)
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

    def _parents(self, version: EmbeddingVersion) -> list[EmbeddingVersion]:
        """What it was initialised from; a deleted parent has no rows left to compare with."""
        references = [Reference.parse(name) for name in version.parents if "@" in name]
        numbers = [(each.task, each.version) for each in references if each.version is not None]
        with self._services.database.read() as session:
            repository = VersionRepository(session)
            return [found for number in numbers if (found := repository.living(*number)) is not None]


def _candidate(services: Services, version: EmbeddingVersion, trained: TrainedRows) -> Candidate:
    z = unpack_embedding(services.read(version.artifact))
    ordered = version.task_kind == "regression"
    return Candidate(version.reference, z, version.words, ordered, trained.own(version))
