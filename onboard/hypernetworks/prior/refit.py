"""Use case: refit the priors of a base when their lessons have changed.

This runs after a task was published or deleted, in any process. Of two concurrent ones, one wins, and the other checks
again. Jobs use the existing head and never wait.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final

from sqlalchemy.orm import Session

from onboard.bases import Base
from onboard.domain.prior import FORMS, Form, PriorVersion, Taught, digest_of_prior
from onboard.errors import ConflictError, NotFoundError
from onboard.hypernetworks.files import base_at_hand
from onboard.hypernetworks.prior.fitting import WEIGHING, digest_of_numbers, fitted
from onboard.hypernetworks.prior.lessons import present_lessons
from onboard.registry.bases import BaseRepository
from onboard.registry.priors import PriorRepository
from onboard.registry.services import Services
from onboard.statistics.prior import Prior

_TIMES: Final = 5  # attempts, if tasks are published at the same time
_FIRST: Final = "the first prior of the base"  # the reason of every version 1


@dataclass(frozen=True)
class _Due:
    """The lessons that a prior is due to be fitted to, and the head that it would replace."""

    taught: Sequence[Taught]
    head: PriorVersion | None

    @property
    def is_empty(self) -> bool:
        return not (self.taught or self.head)


def refit(services: Services, base: Base, reason: str) -> list[PriorVersion]:
    """Refit the priors of a base. Returns the added versions, at most one for each form; none if nothing changed.

    Args:
        base: a registered one.
        reason: stored with the version, unless it is the first one.

    Raises:
        UnavailableError: the artifact store cannot be reached.
        ConflictError: tasks are published faster than it is fitted; a retry follows soon.
    """
    added = []
    for form in FORMS:
        for _ in range(_TIMES):
            try:
                version = _refit(services, base, form, reason)
            except ConflictError as error:
                conflict = error
                continue
            added += [version] if version else []
            break
        else:
            raise conflict
    return added


def refit_all(services: Services, reason: str) -> list[PriorVersion]:
    """Refit the priors of every registered base with files on this machine. Raises as `refit`."""
    with services.database.read() as session:
        records = BaseRepository(session).list()
    added = []
    for record in records:
        with suppress(NotFoundError):
            added += refit(services, base_at_hand(services, record.digest), reason)
    return added


def _refit(services: Services, base: Base, form: Form, reason: str) -> PriorVersion | None:
    with services.database.read() as session:
        due = _due(session, base, form)
    if due.is_empty:
        return None
    prior = fitted(services, base, form, due.taught)
    draft = None if prior is None else _draft(base, form, due.taught, prior)
    if _inputs(draft) == _inputs(due.head):
        return None
    with services.database.write() as session:
        priors = PriorRepository(session)
        if _due(session, base, form) != due:
            raise ConflictError("prior-tasks-changed")
        if draft is None:  # no usable lessons are left
            priors.retire(base.digest, form)
            return None
        draft = replace(draft, reason=reason if priors.has_any(base.digest, form) else _FIRST)
        return priors.advance(draft, due.taught, expected=due.head.version if due.head else None)


def _due(session: Session, base: Base, form: Form) -> _Due:
    return _Due(present_lessons(session, base)[form], PriorRepository(session).head(base.digest, form))


def _draft(base: Base, form: Form, taught: Sequence[Taught], prior: Prior) -> PriorVersion:
    """Return the version of a prior; its digest covers the lessons that were used."""
    used = [lesson for lesson in taught if lesson.task not in prior.left_out]
    digest = digest_of_prior(base.digest, form, WEIGHING, used)
    return PriorVersion(base.digest, form, 0, digest, digest_of_numbers(prior), len(used), prior.left_out)


def _inputs(version: PriorVersion | None) -> tuple[object, ...]:
    return () if version is None else (version.digest, version.left_out)
