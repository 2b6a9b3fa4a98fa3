"""The caller's quota: shown, and checked before an upload is read."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Depends, Request

from onboard.api.access import requires
from onboard.api.deps import OpenServices
from onboard.contract.access import QuotaUse
from onboard.domain.access import Identity, Scope
from onboard.jobs.room import require_room
from onboard.operations.access import quota_of
from onboard.registry.services import Services


def quota_document(services: Services, owner: str) -> dict[str, Any] | None:
    """Return an owner's limits and use as a document; None without a quota."""
    use = quota_of(services.database, owner)
    return None if use is None else QuotaUse.of(use).to_json()


def _with_room(
    request: Request, identity: Annotated[Identity, Depends(requires(Scope.SUBMIT))], services: OpenServices
) -> Identity:
    key = request.headers.get("idempotency-key") or request.query_params.get("key")
    require_room(services.database, identity.name, key=key)
    return identity


SubmitterWithRoom = Annotated[Identity, Depends(_with_room)]
"""Whoever may submit and has a job left. Raises QuotaError. The transaction that queues the job decides."""
