"""Select the tasks to carry, a few at a time; judge and publish each."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import Final

from onboard.domain.limits import MAX_CARRIED
from onboard.domain.names import Reference, require_name
from onboard.domain.task import EmbeddingVersion
from onboard.errors import ConflictError, UnavailableError
from onboard.hypernetworks.files import Manifests, require_base
from onboard.registry.bases import BaseRepository
from onboard.registry.services import Services
from onboard.registry.versions import VersionRepository
from onboard.versions.carry.outcomes import Carried, CarryOutcome
from onboard.versions.carry.publishing import publish
from onboard.versions.compare import RETRY_SECONDS, one_at_a_time

MOST_TASKS: Final = MAX_CARRIED
_NO_EMBEDDING: Final = "It has no embedding: {method} does not use a hypernetwork, so there is nothing to carry."
TURN: Final = threading.Lock()  # held while carrying in this process


def carry(
    services: Services, task: str | None, *, dry_run: bool = False, on_page: Callable[[Carried], None] = lambda _: None
) -> Carried:
    """Carry a task, or with None all that are not at the head; `on_page` is called for every few. Raises like
    `carry_task`.
    """
    if task is not None:
        return carry_task(services, task, dry_run=dry_run)
    manifests, outcomes, after = Manifests(), list[CarryOutcome](), None
    while True:
        page = carry_some(services, after, most=MOST_TASKS, dry_run=dry_run, manifests=manifests)
        on_page(page)
        outcomes += page.outcomes
        after = page.next
        if after is None:
            return Carried(tuple(outcomes), dry_run)


def carry_task(
    services: Services, task: str, *, dry_run: bool = False, bounded: bool = False, manifests: Manifests | None = None
) -> Carried:
    """Carry the version that a task's `latest` names to the head of its base; no outcome if it is already there.

    A version without an embedding is refused, as no hypernetwork is involved.

    Args:
        bounded: refuse a task with a dataset that is too large for a process that serves others.
        manifests: manifests of bases that were already read; without them the whole base is read.

    Raises:
        InputError: the task name is invalid.
        NotFoundError: the task does not exist.
        DamagedError: the file of the head is missing or does not match its digest.
        UnavailableError: this process is carrying other tasks.
    """
    with services.database.read() as session:
        current = VersionRepository(session).resolve(Reference(require_name(task)))
        heads = _heads(BaseRepository(session))
    head = heads[current.base_digest]
    if not current.has_embedding:
        return Carried((CarryOutcome(current, head, False, _NO_EMBEDDING.format(method=current.method)),), dry_run)
    waiting = [current] if current.hypernetwork_version != head else []
    return Carried(_carried(services, waiting, heads, dry_run, bounded, manifests), dry_run)


def carry_some(
    services: Services,
    after: str | None = None,
    *,
    most: int = MOST_TASKS,
    dry_run: bool = False,
    bounded: bool = False,
    manifests: Manifests | None = None,
) -> Carried:
    """Carry the first tasks by name that are not at the head of their base.

    Args:
        most: maximum number of tasks. They are judged together; more tasks make each test stricter (Holm).
        dry_run, bounded, manifests: see `carry_task`.

    Raises:
        DamagedError: the file of a head is missing or does not match its digest.
        UnavailableError: this process is carrying other tasks.
    """
    with services.database.read() as session:
        heads = _heads(BaseRepository(session))
        latest = VersionRepository(session).list(latest_only=True)
    waiting = [
        latest_version
        for latest_version in sorted(latest, key=lambda version: version.task)
        if latest_version.has_embedding
        and latest_version.hypernetwork_version != heads[latest_version.base_digest]
        and (after is None or latest_version.task > after)
    ]
    outcomes = _carried(services, waiting[:most], heads, dry_run, bounded, manifests)
    return Carried(outcomes, dry_run, waiting[most - 1].task if len(waiting) > most else None)


def _heads(bases: BaseRepository) -> dict[str, int]:
    return {record.digest: record.head for record in bases.list()}


def _carried(
    services: Services,
    waiting: Sequence[EmbeddingVersion],
    heads: dict[str, int],
    dry_run: bool,
    bounded: bool,
    manifests: Manifests | None,
) -> tuple[CarryOutcome, ...]:
    if not waiting:
        return ()
    outcomes: list[CarryOutcome] = []
    with one_at_a_time(TURN, UnavailableError("carrying-busy", retry_after_seconds=RETRY_SECONDS)):
        by_base = sorted(waiting, key=lambda version: version.base_digest)
        for digest, versions in groupby(by_base, key=lambda version: version.base_digest):
            outcomes += (
                publish(services, outcome) if outcome.cleared and not dry_run else outcome
                for outcome in _judged(services, list(versions), heads[digest], bounded, manifests)
            )
    return tuple(sorted(outcomes, key=lambda outcome: outcome.present.task))


def _judged(
    services: Services, versions: Sequence[EmbeddingVersion], head: int, bounded: bool, manifests: Manifests | None
) -> Iterator[CarryOutcome]:
    """Yield outcomes of versions of one base, without a number; each is measured on demand."""
    from onboard.versions.carry.clearing import (
        judge,  # imports torch, which a command without anything to do does not need
    )

    try:
        base = require_base(services, versions[0], manifests)
    except ConflictError as error:
        return iter([CarryOutcome(version, head, False, error.outside.message) for version in versions])
    return judge(services, base, versions, head, bounded)
