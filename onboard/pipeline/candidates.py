"""Collect the candidates of the probe: aliased versions of each task, anchors, fingerprint, mean and random."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np

from onboard.bases import Base
from onboard.bases.fingerprints import unpack_fingerprint
from onboard.data.hashes import in_sorted
from onboard.domain.init import FINGERPRINT, Init, InitKind
from onboard.domain.names import Reference
from onboard.domain.task import EmbeddingVersion
from onboard.errors import DamagedError, InputError, NotFoundError
from onboard.probe.candidates import NOTHING, Candidate, mean_candidate, random_candidate
from onboard.probe.prefilter import ANCHORS, prefilter
from onboard.registry.services import Services
from onboard.registry.versions import Startable, VersionRepository
from onboard.storage.embedding import unpack_embedding
from onboard.versions.trained_rows import TrainedRows

T = TypeVar("T")


@dataclass(frozen=True)
class Collected:
    """Embeddings that a new task could start from.

    Args:
        candidates: those worth measuring.
        considered: number of embeddings of tasks and anchors.
        kept: how many of them are among the candidates.
        unreadable: by reference, the error of each version whose files are missing or damaged.
    """

    candidates: list[Candidate]
    considered: int
    kept: int
    unreadable: Mapping[str, str] = field(default_factory=dict)


def collect_candidates(
    services: Services, base: Base, seed: int, fingerprint: np.ndarray | None = None, rows: np.ndarray = NOTHING
) -> Collected:
    """Collect the embeddings that a new task could start from; if there are too many, a selection of them.

    Versions of all hypernetworks are candidates: the probe measures their embeddings under the head.

    Args:
        services: the registry and the store of the learned tasks.
        base: the base that the task is learned on.
        seed: seed of `random`.
        fingerprint: fingerprint of the new task from `Workbench.fingerprint`; without it nothing is filtered.
        rows: hashes (n,) of all its rows; embeddings trained on one of them are left out of the mean.
    """
    known, versions = _startable(services, base, fingerprint)
    trained = TrainedRows(services, base)
    learned, unreadable = _readable(versions, lambda version: _candidate(services, version, trained))
    fresh = [candidate.z for candidate in learned if not in_sorted(rows, candidate.trained_rows).any()]
    extra = shipped_candidates(base, fresh, seed, fingerprint)
    anchors = {anchor.name for anchor in base.anchors}
    measured = len(learned) + sum(candidate.embedding in anchors for candidate in extra)
    return Collected([*learned, *extra], known + len(anchors), measured, unreadable)


def _startable(
    services: Services, base: Base, fingerprint: np.ndarray | None = None
) -> tuple[int, Sequence[EmbeddingVersion]]:
    """Return the number of versions that a training could start from, and those worth measuring."""
    with services.database.read() as session:
        repository = VersionRepository(session)
        known = repository.startable(base.digest)
        startable = known if fingerprint is None else _worth_measuring(base, known, fingerprint)
        return len(known), repository.published((version.task, version.version) for version in startable)


def _worth_measuring(base: Base, known: Sequence[Startable], fingerprint: np.ndarray) -> list[Startable]:
    """Prefilter versions by fingerprint; versions of a base without fingerprints always pass."""
    of_base = base.fingerprints.of if base.fingerprints is not None else {}
    fingerprints = [
        unpack_fingerprint(version.fingerprint) if version.fingerprint is not None else of_base.get(version.task)
        for version in known
    ]
    return [known[index] for index in prefilter(fingerprint, fingerprints, scaled=base.fingerprints is not None)]


def shipped_candidates(
    base: Base, learned: Sequence[np.ndarray], seed: int, fingerprint: np.ndarray | None
) -> list[Candidate]:
    """Return the candidates that are not tasks: anchors, the new task's fingerprint, random and the mean.

    Args:
        base: the base that the task is learned on.
        learned: embeddings of tasks (t,) that the mean includes besides all anchors.
        seed: seed of `random`.
        fingerprint: fingerprint of the new task; only the nearest anchors are measured. With None, or for a base
            without fingerprints, all anchors are, and the fingerprint itself is not a candidate.
    """
    anchors = {anchor.name: anchor for anchor in base.anchors}
    names: Sequence[str] = list(anchors)
    own: list[Candidate] = []
    if fingerprint is not None and base.fingerprints is not None:
        names = base.fingerprints.nearest(fingerprint, names, ANCHORS)
        own = [Candidate(FINGERPRINT, fingerprint)]
    candidates = [*(Candidate(name, base.embeddings[name]) for name in names), *own]
    candidates.append(random_candidate(int(base.document["task_embedding_size"]), seed))
    everything = [*learned, *(base.embeddings[name] for name in anchors)]
    return [*candidates, *([mean_candidate(everything)] if everything else [])]


def named_candidate(
    services: Services,
    base: Base,
    seed: int,
    init: Init,
    fingerprint: np.ndarray | None = None,
    rows: np.ndarray = NOTHING,
) -> Candidate:
    """Return the candidate that `--init` names: `random`, `mean`, `fingerprint`, an anchor, or TASK[@REF].

    Reads no other version, except for `mean`, which needs all embeddings.

    Args:
        services, base, seed, rows: see `collect_candidates`.
        init: the start; a version that was pinned at submission is used as pinned.
        fingerprint: fingerprint of the new task; a valid start only if the base's embeddings started at fingerprints.

    Raises:
        InputError: the candidate does not exist or belongs to another base.
        DamagedError: its files are missing or damaged.
    """
    trained, learned = TrainedRows(services, base), list[np.ndarray]()
    if init.kind is InitKind.MEAN:
        _, versions = _startable(services, base)
        fresh = [version for version in versions if not in_sorted(rows, trained.own(version)).any()]
        learned, _ = _readable(fresh, lambda version: unpack_embedding(services.read(version.artifact)))
    shipped = {candidate.embedding: candidate for candidate in shipped_candidates(base, learned, seed, None)}
    if fingerprint is not None and base.fingerprints is not None:
        shipped[FINGERPRINT] = Candidate(FINGERPRINT, fingerprint)
    if init.name in shipped:
        return shipped[init.name]
    try:
        with services.database.read() as session:
            version = VersionRepository(session).resolve(Reference.parse(init.reference))
    except NotFoundError as error:
        raise InputError("unknown-init-embedding", init=init.reference) from error
    if version.base_digest != base.digest:  # not pinned: its alias moved while the job waited
        raise InputError("init-of-other-base", init=init.name, version=version.reference, base=base.name)
    return _candidate(services, version, trained)


def _readable(
    versions: Sequence[EmbeddingVersion], read: Callable[[EmbeddingVersion], T]
) -> tuple[list[T], dict[str, str]]:
    """Read versions; return the results and the errors by reference, so that one damaged file does not
    block learning.
    """
    readable, unreadable = [], {}
    for version in versions:
        try:
            readable.append(read(version))
        except DamagedError as error:
            unreadable[version.reference] = error.outside.message
    return readable, unreadable


def _candidate(services: Services, version: EmbeddingVersion, trained: TrainedRows) -> Candidate:
    version.require_embedding("to start from")
    z = unpack_embedding(services.read(version.artifact))
    ordered = version.task_kind == "regression"
    return Candidate(version.reference, z, version.words, ordered, trained.own(version))
