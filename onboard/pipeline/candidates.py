"""The candidates of the probe: each task's aliased versions under the head, anchors, fingerprint, mean and random."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np

from onboard.bases import Base
from onboard.bases.fingerprints import unpack_fingerprint
from onboard.domain.init import FINGERPRINT, Init, InitKind
from onboard.domain.names import Reference
from onboard.domain.task import EmbeddingVersion
from onboard.errors import DamagedError, InputError, NotFoundError
from onboard.probe.candidates import NOTHING, Candidate, in_sorted, mean_candidate, random_candidate
from onboard.probe.prefilter import ANCHORS, prefilter
from onboard.registry.services import Services
from onboard.registry.versions import Startable, VersionRepository
from onboard.storage.embedding import unpack_embedding
from onboard.versions.trained_rows import TrainedRows

T = TypeVar("T")


@dataclass(frozen=True)
class Collected:
    """What a new task could start from.

    Args:
        candidates: those that are worth a measurement.
        considered: how many embeddings of tasks and anchors there are.
        kept: how many of them are among the candidates.
        unreadable: what is wrong with the versions whose files are gone or damaged, by their reference.
    """

    candidates: list[Candidate]
    considered: int
    kept: int
    unreadable: Mapping[str, str] = field(default_factory=dict)


def collect_candidates(
    services: Services, base: Base, seed: int, fingerprint: np.ndarray | None = None, rows: np.ndarray = NOTHING
) -> Collected:
    """Everything that a new task could start from; where it is too much, what looks like the new task, and some others.

    Versions of all hypernetworks are candidates: the probe measures their numbers under the head.

    Args:
        services: where the learned tasks lie.
        base: that the task is learned on.
        seed: of `random`.
        fingerprint: of the new task, as `Workbench.fingerprint` gives it; without it everything is taken.
        rows: hashes (n,) of all its rows: an embedding that knows one of them has no part in the mean.
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
    """How many versions a training could start from, and those of them that are worth a measurement."""
    with services.database.read() as session:
        repository = VersionRepository(session)
        known = repository.startable(base.digest)
        startable = known if fingerprint is None else _worth_measuring(base, known, fingerprint)
        return len(known), repository.published((version.task, version.version) for version in startable)


def _worth_measuring(base: Base, known: Sequence[Startable], fingerprint: np.ndarray) -> list[Startable]:
    """Those that the prefilter takes; sources of a base without fingerprints have none, and are always among them."""
    of_base = base.fingerprints.of if base.fingerprints is not None else {}
    fingerprints = [
        unpack_fingerprint(version.fingerprint) if version.fingerprint is not None else of_base.get(version.task)
        for version in known
    ]
    return [known[index] for index in prefilter(fingerprint, fingerprints, scaled=base.fingerprints is not None)]


def shipped_candidates(
    base: Base, learned: Sequence[np.ndarray], seed: int, fingerprint: np.ndarray | None
) -> list[Candidate]:
    """What stands beside the tasks: anchors, the new task's fingerprint, random and the mean.

    Args:
        base: that the task is learned on.
        learned: embeddings of tasks (t,) that count in the mean, as do all anchors.
        seed: of `random`.
        fingerprint: of the new task: only the anchors nearest to it are worth a measurement. None takes them all, and
            so does a base without fingerprints, where it is no embedding either.
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
    """The candidate that `--init` names: `random`, `mean`, `fingerprint`, an anchor, or TASK[@REF].

    No other version is read, but for `mean`, which is made of the embeddings of all.

    Args:
        services, base, seed, rows: as for `collect_candidates`.
        init: the start; a version that was pinned at submission is taken as it is.
        fingerprint: of the new task; it can be started from where the base's embeddings started at fingerprints.

    Raises:
        InputError: there is none, or it belongs to another base.
        DamagedError: its files are gone or damaged.
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
    if version.base_digest != base.digest:  # not pinned: its alias has moved while the job waited
        raise InputError("init-of-other-base", init=init.name, version=version.reference, base=base.name)
    return _candidate(services, version, trained)


def _readable(
    versions: Sequence[EmbeddingVersion], read: Callable[[EmbeddingVersion], T]
) -> tuple[list[T], dict[str, str]]:
    """What was read, and what is wrong with the others: one damaged file must not keep everybody from learning."""
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
