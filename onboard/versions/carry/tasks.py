"""Which tasks are to be carried, a few at a time, and each of them judged and published."""

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
_NO_EMBEDDING: Final = (
    "It has no embedding: {method} trains nothing that a hypernetwork has a part in, so there is nothing to carry, and "
    "no head changes what it answers."
)
TURN: Final = threading.Lock()  # of the one who carries in this process


def carry(
    services: Services, task: str | None, *, dry_run: bool = False, on_page: Callable[[Carried], None] = lambda _: None
) -> Carried:
    """Carry a task, or with None all that are not at the head; `on_page` hears of every few. Raises as `carry_task`."""
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
    """Carry what a task's `latest` names to the head of its base; no outcome where it is there already.

    A version without an embedding is refused: no head has a part in it.

    Args:
        services: where it lies.
        task: its name.
        dry_run: judge only.
        bounded: refuse a task whose dataset is too large to be read by a process that others use meanwhile.
        manifests: of the bases that were read already; without them the whole base is read.

    Raises:
        InputError: no name of a task.
        NotFoundError: no such task.
        DamagedError: the bytes of the head are gone, or do not match their digest.
        UnavailableError: this process is carrying others.
    """
    with services.database.read() as session:
        present = VersionRepository(session).resolve(Reference(require_name(task)))
        heads = _heads(BaseRepository(session))
    head = heads[present.base_digest]
    if not present.has_embedding:
        return Carried((CarryOutcome(present, head, False, _NO_EMBEDDING.format(method=present.method)),), dry_run)
    waiting = [present] if present.hypernetwork_version != head else []
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
        services: where they lie.
        after: only tasks whose name comes after this one.
        most: at most so many. They are judged together: the more, the stricter for each (Holm).
        dry_run, bounded, manifests: as of `carry_task`.

    Raises:
        DamagedError: the bytes of a head are gone, or do not match their digest.
        UnavailableError: this process is carrying others.
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
    """Outcomes of versions of one base, without a number; each is measured when it is asked for."""
    from onboard.versions.carry.clearing import (
        judge,  # with torch, which a command that finds nothing to do needs not wait for
    )

    try:
        base = require_base(services, versions[0], manifests)
    except ConflictError as error:
        return iter([CarryOutcome(version, head, False, error.outside.message) for version in versions])
    return judge(services, base, versions, head, bounded)
