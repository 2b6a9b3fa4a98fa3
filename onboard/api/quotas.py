"""Refuse submissions of owners without a place before their upload is read."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Request

from onboard.api.access import requires
from onboard.api.deps import OpenServices
from onboard.domain.access import Identity, Scope
from onboard.jobs.room import require_room


def _with_room(
    request: Request, identity: Annotated[Identity, Depends(requires(Scope.SUBMIT))], services: OpenServices
) -> Identity:
    key = request.headers.get("idempotency-key") or request.query_params.get("key")
    require_room(services.database, identity.name, key=key)
    return identity


SubmitterWithRoom = Annotated[Identity, Depends(_with_room)]
"""Whoever may submit and has a job left. Raises QuotaError. The transaction that queues the job decides."""
