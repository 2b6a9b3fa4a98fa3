"""Decide whether versions may move to another hypernetwork: the guard's verdict, and their metrics there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from onboard.bases import Base
from onboard.contract.guard import GuardedTask
from onboard.domain.task import EmbeddingVersion
from onboard.errors import DamagedError
from onboard.evaluate.verdicts import may_replace
from onboard.guard import clear
from onboard.guard.canaries import canary_ids
from onboard.hypernetworks.engines import engine_at
from onboard.model.engine import Engine
from onboard.model.protected import ProtectedTask, Protection
from onboard.registry.services import Services
from onboard.versions.carry.outcomes import CarryOutcome
from onboard.versions.carry.remeasuring import remeasure
from onboard.versions.compare import too_large
from onboard.versions.protected import protected_with_evidence
from onboard.versions.trained_rows import TrainedRows

_PREFIX = {"fail": "The guard refuses it. ", "not enough evidence": "There is not enough evidence. "}


def judge(
    services: Services, base: Base, versions: Sequence[EmbeddingVersion], head: int, bounded: bool
) -> Iterator[CarryOutcome]:
    """Yield the outcomes of versions under hypernetwork version `head` of their base, in order.

    The guard checks all of them at once; metrics are measured on demand.

    Args:
        versions: published versions of different tasks.
        head: the hypernetwork version.
        bounded: refuse versions with a dataset that is too large for a process that serves others.

    Raises:
        DamagedError: the file of `head` is missing or does not match its digest.
        OutOfMemoryError: the GPU cannot hold even a single row.
    """
    engine, trained = engine_at(services, base, head), TrainedRows(services, base)
    excluded = [trained.known_to_some({head, version.hypernetwork_version, version.origin}) for version in versions]
    earlier = [
        _earlier(services, base, engine, version, rows, bounded)
        for version, rows in zip(versions, excluded, strict=True)
    ]
    verdicts = clear(engine, engine.hypernetwork, Protection(earlier, canary_ids(engine.encoder, "guard")))
    return (
        _outcome(services, base, version, head, verdict, rows, trained)
        for version, verdict, rows in zip(versions, verdicts, excluded, strict=True)
    )


def _earlier(
    services: Services, base: Base, engine: Engine, version: EmbeddingVersion, known: np.ndarray, bounded: bool
) -> ProtectedTask:
    """Return the version for the guard. Unreadable data counts as a failure."""
    try:
        trouble = too_large(services, version) if bounded else None
        if trouble is None:
            return protected_with_evidence(services, base, version, known)
    except DamagedError as error:
        trouble = f"{version.reference}: {error.outside.message}"
    nothing = np.zeros(0, dtype=np.float32)
    return ProtectedTask(version.reference, nothing, engine.trie(version.words), engine.hypernetwork, trouble=trouble)


def _outcome(
    services: Services,
    base: Base,
    version: EmbeddingVersion,
    head: int,
    verdict: GuardedTask,
    known: np.ndarray,
    trained: TrainedRows,
) -> CarryOutcome:
    if not verdict.passed:
        return CarryOutcome(version, head, False, _PREFIX[verdict.verdict] + verdict.reason, verdict=verdict)
    try:
        known = np.union1d(known, trained.own(version, exactly=True))
        measured = remeasure(services, base, version, head, known)
    except DamagedError as error:
        return CarryOutcome(version, head, False, error.outside.message, verdict=verdict)
    replacement = may_replace(measured.comparison, weak=version.weak, predecessor_weak=version.weak)
    reason = verdict.reason if replacement.allowed else replacement.reason
    return CarryOutcome(
        version, head, replacement.allowed, reason, None, measured.metrics, verdict, measured.comparison
    )
