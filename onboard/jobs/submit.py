"""Use case: check, snapshot and queue a dataset. Everything is validated before the job is queued."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from onboard.bases import Base, find_base
from onboard.data.hashes import pack_hashes, row_hashes
from onboard.data.snapshot import digest as snapshot_digest
from onboard.data.snapshot import save as save_snapshot
from onboard.domain.dataset import Dataset
from onboard.domain.init import Init, InitKind
from onboard.domain.job import Job, require_time_limit
from onboard.domain.names import Reference, did_you_mean, require_name
from onboard.domain.report import require_metric
from onboard.domain.task import SnapshotRecord
from onboard.errors import InputError, NotFoundError
from onboard.hypernetworks.register import register_base
from onboard.jobs.doorbell import ring_or_warn
from onboard.jobs.methods import as_queued, require_method
from onboard.jobs.request import JobRequest as JobRequest
from onboard.jobs.room import require_room
from onboard.jobs.superset import as_addition
from onboard.registry.jobs import JobRepository
from onboard.registry.snapshots import SnapshotRepository
from onboard.registry.tasks import TaskRepository
from onboard.registry.versions import VersionRepository
from onboard.registry.workers import QueueRepository
from onboard.storage.artifacts import digest_of

if TYPE_CHECKING:
    from onboard.jobs.doorbell import Doorbell
    from onboard.registry.services import Services

_WITHOUT_NAME = (InitKind.AUTO, InitKind.RANDOM, InitKind.MEAN)


def submit(
    services: Services, doorbell: Doorbell, request: JobRequest, accepted: Callable[[], object] = lambda: None
) -> tuple[Job, str | None]:
    """Queue the job and wake a worker; if the wake-up is lost, the reconciler repeats it.

    Args:
        request: a checked dataset and the requested job.
        accepted: called once all checks have passed, before the job is stored.

    Returns:
        The job, and a warning if the broker could not be reached or no known worker serves the queue.

    Raises:
        InputError: an init, method or metric is unknown, the base or the rows do not allow the method, or the queue
            name or time limit is invalid.
        ConflictError: the task has another label set, the key belongs to another request, or the init is a version that
            is being rebuilt without a deleted task.
        QuotaError: the owner has as many jobs or bytes as it may have.
        NotFoundError: the base does not exist.
    """
    require_name(request.queue, "queue name")
    require_time_limit(request.time_limit_seconds)
    request, added = as_addition(services, request)
    dataset = request.checked.dataset
    base = find_base(request.spec.base)
    require_metric(request.spec.metric, dataset.kind)
    require_method(request.spec, dataset, base)
    register_base(services, base)
    with services.database.read() as session:
        start = _version_to_start_from(VersionRepository(session), request.spec.start, base)
        if not request.spec.new_labels:
            TaskRepository(session).require_labels(request.spec.task, dataset.kind, dataset.labels)
    accepted()
    pool, queued = request.checked.unlabelled, as_queued(request.spec, dataset)
    parts = dataset, None if pool is None else pool.dataset, request.rows
    packed = [pack(part, request.spec.task) for part in parts if part is not None]
    sizes = {digest: size for one in packed for digest, size in one.sizes.items()}
    require_room(services.database, request.owner, sizes, key=request.key)
    snapshots = [one.stored(services) for one in packed]
    snapshot, *others = snapshots
    options = {**queued.options, "base_digest": base.digest, "dataset_report": request.checked.report.to_json()}
    if pool is not None:
        options["unlabelled"] = {**pool.to_json(), "digest": others.pop(0).digest}
    if request.rows is not None:
        options["change"] = {**options["change"], "rows": others.pop(0).digest}
    spec = replace(queued, dataset=snapshot.digest, options=options)
    spec = spec.pinned_to(start if spec.start.kind is InitKind.NAMED else None)
    with services.database.write() as session:
        request.unchanged(session)
        for stored in snapshots:
            SnapshotRepository(session).add(stored)
        job, _ = JobRepository(session).add(
            spec, queue=request.queue, priority=request.priority, key=request.key, owner=request.owner,
            time_limit_seconds=request.time_limit_seconds,
            artifacts=[artifact for stored in snapshots for artifact in stored.artifacts],
        )  # fmt: skip
    warnings = added, warn_of_queue(services, request.queue), ring_or_warn(doorbell, request.queue)
    return job, " ".join(filter(None, warnings)) or None


def warn_of_queue(services: Services, queue: str) -> str | None:
    """Return a warning if no worker serves the queue; autoscalers may start one only after the first job."""
    with services.database.read() as session:
        known = QueueRepository(session).known()
    if queue in known:
        return None
    by_itself = services.settings.embedded and services.settings.start_worker
    return (
        f"No worker has ever served the queue {queue!r} yet; known are {', '.join(sorted(known))}."
        f"{did_you_mean(queue, known)} "
        + ("Onboard starts a worker for it on this machine." if by_itself else "")
        + ("" if by_itself else f"The job waits for: onboard worker --queue {queue}")
    )


def _version_to_start_from(versions: VersionRepository, start: Init, base: Base) -> str | None:
    """Return the version that a start names now, as `task@vN`; None if it names none.

    Raises:
        InputError: the start does not exist or belongs to another base.
        ConflictError: the version is being rebuilt without a deleted task.
    """
    anchors = {anchor.name for anchor in base.anchors}
    if start.kind in _WITHOUT_NAME or start.name in anchors:
        return None
    if start.kind is InitKind.FINGERPRINT and base.fingerprints is not None:
        return None
    try:
        version = versions.resolve(Reference.parse(start.name))
    except NotFoundError as error:
        known = {*_WITHOUT_NAME, *anchors, *(candidate.task for candidate in versions.startable(base.digest))}
        raise InputError("unknown-init", init=start.name, guess=did_you_mean(start.name, known)) from error
    if version.base_digest != base.digest:
        raise InputError("init-of-other-base", init=start.name, version=version.reference, base=base.name)
    version.require_embedding("to start from")
    versions.require_startable(version.reference)
    return version.reference


@dataclass(frozen=True)
class Packed:
    """A dataset as bytes that are not stored yet."""

    record: SnapshotRecord
    content: bytes
    hashes: bytes

    @property
    def sizes(self) -> dict[str, int]:
        """Bytes by digest."""
        return {self.record.artifact: len(self.content), self.record.row_hashes: len(self.hashes)}

    def stored(self, services: Services) -> SnapshotRecord:
        """Store the bytes; the caller adds the row of the snapshot."""
        services.store(self.content, "snapshot")
        services.store(self.hashes, "row_hashes")
        return self.record


def pack(dataset: Dataset, name: str) -> Packed:
    """Return the snapshot of a dataset, without storing anything."""
    rows = {"train": dataset.train, "validation": dataset.validation, "test": dataset.test}
    content, hashes = save_snapshot(dataset), pack_hashes(row_hashes(dataset.train))
    record = SnapshotRecord(
        digest=snapshot_digest(dataset),
        artifact=digest_of(content),
        row_hashes=digest_of(hashes),
        kind=dataset.kind,
        labels=dataset.labels,
        rows={split: len(examples) for split, examples in rows.items()},
        name=name,
    )
    return Packed(record, content, hashes)
