"""Keep the features of a task's rows, so that its next job reads only the new ones."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from onboard.errors import DamagedError, NotFoundError, PinMismatchError, StorageError
from onboard.registry.task_features import TaskFeatureRepository
from onboard.storage.features import FEATURES, pack_features, unpack_features

if TYPE_CHECKING:
    import numpy as np
    from sqlalchemy.orm import Session

    from onboard.pipeline.attempt import Attempt
    from onboard.registry.services import Services


def kept_features(services: Services, task: str, base_digest: str) -> dict[bytes, np.ndarray]:
    """Return features of rows of the task's earlier versions by `features_key`; empty if they are deleted."""
    with services.database.read() as session:
        artifact = TaskFeatureRepository(session).find(task, base_digest)
    if artifact is None:
        return {}
    with suppress(NotFoundError, DamagedError, PinMismatchError, StorageError):
        return unpack_features(services.read(artifact), base_digest)
    return {}  # they are recomputed


def store_features(attempt: Attempt) -> str | None:
    """Store the features of the job's labeled rows and labels; return the digest, or None without any."""
    bench = attempt.bench
    unlabelled = {tuple(ids) for ids in bench.encode(bench.unlabelled)} if bench.unlabelled else set()
    read = {ids: row for ids, row in bench.read.items() if ids not in unlabelled}
    packed = pack_features(read, attempt.base.digest)
    return None if packed is None else attempt.services.store(packed, FEATURES)


def keep_features(session: Session, attempt: Attempt, artifact: str | None) -> None:
    """Register the stored features for the next job of the task."""
    if artifact is not None:
        TaskFeatureRepository(session).put(attempt.job.spec.task, attempt.base.digest, artifact)
