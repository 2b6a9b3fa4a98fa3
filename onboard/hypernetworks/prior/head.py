"""The head of a base's prior and its lessons. If the base has lessons, a job that finds no head fits one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from onboard.bases import Base
from onboard.domain.prior import Form, PriorVersion, Taught
from onboard.hypernetworks.prior.refit import refit
from onboard.registry.priors import PriorRepository
from onboard.registry.services import Services

_REASON: Final = "a job needed a prior"  # after a deletion that no worker has seen yet


def prior_head(services: Services, base: Base, form: Form) -> tuple[PriorVersion | None, Sequence[Taught]]:
    """Return the version for new tasks, and its lessons; None if there are no lessons yet."""
    for again in (True, False):
        with services.database.read() as session:
            priors = PriorRepository(session)
            head = priors.head(base.digest, form)
            if head is not None:
                return head, priors.lessons(head)
        if again and base.lessons:
            refit(services, base, _REASON)
    return None, []
