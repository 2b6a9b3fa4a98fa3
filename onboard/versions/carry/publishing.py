"""Publish an accepted version as the task's next one, pinned to the head, and move `latest` to it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from onboard.domain.names import LATEST
from onboard.domain.release import code_version
from onboard.domain.task import EmbeddingVersion
from onboard.domain.webhook import PUBLISHED
from onboard.errors import ConflictError, DamagedError, NotFoundError
from onboard.registry.aliases import AliasRepository
from onboard.registry.audit import actor, record
from onboard.registry.bases import BaseRepository
from onboard.registry.in_use import InUseRepository
from onboard.registry.outbox import OutboxRepository
from onboard.registry.services import Services
from onboard.registry.tasks import TaskRepository
from onboard.registry.versions import VersionRepository, published_facts
from onboard.storage.drift import training_facts, training_in
from onboard.storage.embedding import embedding_facts, pack_embedding, verified_embedding
from onboard.storage.novelty import novelty_facts, novelty_in, novelty_tensors
from onboard.versions.carry.outcomes import CarryOutcome

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

_REASON = "carried"


def publish(services: Services, outcome: CarryOutcome) -> CarryOutcome:
    """Publish an accepted outcome; refuse it if the task or the head has changed meanwhile, or files are missing.

    If the task already has a version with these numbers at the head (because `latest` was rolled back), `latest` moves
    to it.

    Raises:
        StorageError, NotAllowedError: the embedding cannot be stored.
    """
    try:
        number = _moved_to_twin(services, outcome) or _published(services, outcome)
    except (ConflictError, NotFoundError, DamagedError) as error:
        return replace(outcome, cleared=False, reason=error.outside.message)
    return replace(outcome, version=number)


def _moved_to_twin(services: Services, outcome: CarryOutcome) -> int | None:
    current = outcome.present
    with services.database.write() as session:
        _hold(session, outcome)
        same = [
            version.version
            for version in VersionRepository(session).list(task=current.task, base_digest=current.base_digest)
            if version.hypernetwork_version == outcome.head and _answers(version) == _answers(current)
        ]
        if not same:
            return None
        _move_latest(session, outcome, same[-1])
        return same[-1]


def _answers(version: EmbeddingVersion) -> tuple[object, ...]:
    """Return everything except the hypernetwork that determines its answers."""
    numbers = version.embedding_digest, version.readout, version.temperature
    return *numbers, version.labels, version.words, version.low, version.high


def _published(services: Services, outcome: CarryOutcome) -> int:
    current, head = outcome.present, outcome.head
    content = services.read(current.artifact)
    z, novelty = verified_embedding(content, current), novelty_in(content)
    training = training_in(content)
    if training is not None:  # its answers were given under another hypernetwork
        training = replace(training, held_out=False)
    draft = replace(
        current,
        kind="carried",
        hypernetwork_version=head,
        learned_under=current.origin if current.origin != head else None,
        parent=current.reference,
        mixed_from={},
        metrics=outcome.metrics or {},
        out_of_fold=None,  # they belong to another hypernetwork
        code_version=code_version(),
        change=None,
        job=None,
    )
    while True:
        with services.database.read() as session:
            digest = BaseRepository(session).hypernetwork(current.base_digest, head).digest
            number = VersionRepository(session).next_number(current.task)
        facts = {**embedding_facts(replace(draft, version=number), digest), **novelty_facts(novelty)}
        facts |= training_facts(training)
        packed = pack_embedding(z, facts, novelty_tensors(novelty))
        numbered = replace(draft, artifact=services.store(packed, "embedding"))
        try:
            return _commit(services, outcome, numbered, number)
        except _NumberTakenError:
            continue


class _NumberTakenError(Exception):
    """The version number in the stored file was taken by a job; the transaction is rolled back."""


def _commit(services: Services, outcome: CarryOutcome, draft: EmbeddingVersion, number: int) -> int:
    with services.database.write() as session:
        _hold(session, outcome)
        task = TaskRepository(session).get(draft.task)
        added = VersionRepository(session).add(draft, task, move_latest=False)
        if added.version != number:
            raise _NumberTakenError
        OutboxRepository(session).add(PUBLISHED, published_facts(added))
        _move_latest(session, outcome, number)
    return number


def _hold(session: Session, outcome: CarryOutcome) -> None:
    """Lock head and task until the transaction ends.

    Raises:
        NotFoundError: the task was deleted.
        PreconditionFailedError: `latest` does not name the judged version.
        ConflictError: the head moved.
    """
    current = outcome.present
    head = InUseRepository(session).hold_head(current.base_digest)
    if head != outcome.head:
        raise ConflictError("hypernetwork-moved-while-carrying", head=head, expected=outcome.head)
    AliasRepository(session).require(current.task, LATEST, current.version, lock=True)
    TaskRepository(session).get(current.task)


def _move_latest(session: Session, outcome: CarryOutcome, number: int) -> None:
    current = outcome.present
    AliasRepository(session).move(current.task, LATEST, number, expected=current.version, actor=actor(), reason=_REASON)
    record(
        session, "task.carry", current.task, version=number, previous=current.version,
        hypernetwork_version=outcome.head, learned_under=current.origin,
    )  # fmt: skip
