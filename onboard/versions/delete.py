"""Use case: delete a task permanently with all its data: rows, embeddings, requests, results, files.

Its name, its numbers and an entry of the audit log stay. Descendants are listed, and unlearned on request. The registry
is changed first, in one transaction; files that cannot be deleted after it are deleted by the next `onboard gc`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Final

from onboard.contract.deleting import DeletedDocument, Descendants, RemovedCounts
from onboard.domain.descent import Descent
from onboard.domain.names import did_you_mean
from onboard.domain.webhook import DELETED
from onboard.errors import ConflictError, DamagedError, NotFoundError, OnboardError, StorageError, UnavailableError
from onboard.operations.lock import alone
from onboard.operations.retention import OLD_HOURS
from onboard.registry.artifacts import ArtifactRecord, ArtifactRepository
from onboard.registry.audit import record
from onboard.registry.deleting import DeletingRepository, Removed
from onboard.registry.descent import DescentRepository
from onboard.registry.outbox import OutboxRepository
from onboard.registry.priors import PriorRepository
from onboard.registry.services import Services
from onboard.registry.snapshots import StageOutputRepository
from onboard.registry.tasks import TaskRepository
from onboard.registry.unlearning import UnlearningRepository
from onboard.versions.unlearn import Unlearning, unlearn

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

_OLD_SECONDS: Final = OLD_HOURS * 3600.0  # outdated files are older, recently announced ones are not
_BATCH: Final = 500  # artifacts per transaction; object stores delete up to 1000 per request


@dataclass
class Deleted:
    """The deleted data, and its descendants.

    Args:
        dry_run: whether nothing was changed.
        aliases: aliases by reference of their version.
        unlearning: what happens to descendants; None if not requested.
        bases: digests of bases with a prior that included the task and is refitted without it.
        shipped: whether a base was trained on it, so that it cannot be unlearned.
    """

    task: str
    dry_run: bool
    removed: Removed
    descendants: Descent
    aliases: Mapping[str, Sequence[str]]
    unlearning: Unlearning | None = None
    artifacts: Sequence[ArtifactRecord] = field(default_factory=list)
    bases: Sequence[str] = ()
    shipped: bool = False

    @property
    def queues(self) -> frozenset[str]:
        """Queues with jobs that wait because of it."""
        return self.removed.queues | frozenset(self.unlearning.queues if self.unlearning else ())

    def to_document(self) -> DeletedDocument:
        """Return the result of `onboard tasks delete --json`."""
        removed, unlearning = self.removed, self.unlearning.to_document() if self.unlearning else None
        if self.dry_run and unlearning is not None:  # those jobs were never queued
            rebuilding = tuple(versions.model_copy(update={"job": None}) for versions in unlearning.rebuilding)
            unlearning = unlearning.model_copy(update={"rebuilding": rebuilding})
        return DeletedDocument(
            task=self.task,
            deleted=not self.dry_run,
            dry_run=self.dry_run,
            removed=RemovedCounts(
                versions=removed.versions,
                jobs=removed.jobs,
                datasets=removed.datasets,
                artifacts=len(self.artifacts),
                bytes=sum(artifact.size_bytes for artifact in self.artifacts),
            ),
            shared_with=tuple(removed.shared_with),
            descendants=Descendants.of_descent(self.descendants, self.aliases),
            unlearning=unlearning,
            shipped=self.shipped,
        )


def delete_task(services: Services, name: str, *, unlearning: bool = False, dry_run: bool = False) -> Deleted:
    """Delete a task permanently. Its version numbers are never reused.

    Args:
        unlearning: rebuild descendants. It may also be requested later, after the task was deleted.
        dry_run: only report what would happen.

    Raises:
        NotFoundError: neither the task nor any data of it exists.
        ConflictError: it cannot be unlearned because a base was trained on it, or other maintenance is running.
        StorageError: the task is deleted, but not all of its files.
    """
    with alone(services.database, "tasks delete") as keep:
        named = _named_by_outputs(services, name)
        deleted = services.database.write_again(partial(_from_registry, name, unlearning, dry_run, named))
        if dry_run:
            return deleted
        services.database.empty_log()
        for batch in _batches([artifact.digest for artifact in deleted.artifacts]):
            keep()
            _sweep(services, name, batch)
    for base in deleted.bases:
        _refit_prior(services, base, name)
    return deleted


def _refit_prior(services: Services, base: str, name: str) -> None:
    """Refit a base's prior without the task. If that is impossible here or now, a worker does it soon."""
    from onboard.hypernetworks.files import base_at_hand
    from onboard.hypernetworks.prior.refit import refit

    with suppress(OnboardError):
        refit(services, base_at_hand(services, base), f"the task {name} was deleted")


def _named_by_outputs(services: Services, name: str) -> list[tuple[str, float]]:
    """Return artifacts that only stage outputs of the task's jobs reference: weights that were tuned on it."""
    with services.database.read() as session:
        outputs = StageOutputRepository(session).of_task(name)
    endings = []
    for artifact, at in outputs:
        with suppress(NotFoundError, DamagedError, ValueError):
            named = json.loads(services.artifacts.get(artifact)).get("artifact")
            endings += [(named, at)] if named else []
    return endings


def _from_registry(
    name: str, unlearning: bool, dry_run: bool, named: Sequence[tuple[str, float]], session: Session
) -> Deleted:
    repository, descent = DeletingRepository(session), DescentRepository(session)
    root = descent.root(name)
    repository.hold(root)  # includes versions that are published meanwhile
    descendants, has_content = descent.of(root), repository.has_content(name)
    if not has_content and not (unlearning and (descendants.versions or descendants.hypernetworks)):
        alike = did_you_mean(name, (task.name for task in TaskRepository(session).list()))
        raise NotFoundError("unknown-task-to-delete", task=name, alike=alike)
    shipped = repository.is_shipped(name)
    if unlearning and shipped:
        raise ConflictError("task-taught-base", task=name)
    deleted = Deleted(name, dry_run, Removed(), descendants, descent.aliases(), shipped=shipped)
    if has_content:
        deleted.removed = repository.remove(root)
    elif UnlearningRepository(session).is_news(descendants):
        repository.begin_again(root, deleted.removed)
    deleted.bases = sorted({base for base, _ in PriorRepository(session).forget(name)})
    deleted.removed.freed(named)
    ArtifactRepository(session).outdate(deleted.removed.artifacts)
    if deleted.removed.versions:
        OutboxRepository(session).add(DELETED, {"task": name})
    if unlearning:
        deleted.unlearning = unlearn(session, name, descendants, deleted.aliases)
    removed = deleted.removed
    facts = {"versions": removed.versions, "jobs": removed.jobs, "datasets": removed.datasets, "unlearn": unlearning}
    record(session, "task.delete", name, **facts)
    due = [*removed.artifacts, *(deleted.unlearning.artifacts if deleted.unlearning else ())]
    deleted.artifacts = [digest for part in _batches(due) for digest in ArtifactRepository(session).outdated(part)]
    if dry_run:
        session.rollback()
    return deleted


def _batches(digests: Sequence[str]) -> Iterator[list[str]]:
    waiting = iter(digests)
    while batch := list(islice(waiting, _BATCH)):
        yield batch


def _sweep(services: Services, name: str, digests: Sequence[str]) -> None:
    """Delete rows and files of artifacts like garbage collection does; files in use stay."""
    try:
        with services.database.write() as session:
            gone = ArtifactRepository(session).collect(_OLD_SECONDS, _BATCH, among=digests)
            services.artifacts.delete(*(artifact.digest for artifact in gone))
    except UnavailableError as error:
        raise _not_swept(name, error.message).hide(_not_swept(name, error.outside.message)) from error


def _not_swept(name: str, reason: str) -> StorageError:
    return StorageError("artifacts-not-deleted", task=name, reason=reason)
