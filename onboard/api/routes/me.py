"""The caller: its token's scopes, and the version of the service."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends

from onboard import __version__
from onboard.api.access import signed_in
from onboard.api.deps import OpenServices
from onboard.contract.access import Me, QuotaUse
from onboard.domain.access import Identity, sorted_scopes
from onboard.operations.access import quota_of

router = APIRouter(prefix="/v1/me", tags=["access"])


@router.get("", response_model=Me)
def show_me(identity: Annotated[Identity, Depends(signed_in)], services: OpenServices) -> dict[str, Any]:
    """Return the caller's token with its limits, and the version of the service; accepts any token."""
    use = quota_of(services.database, identity.name)
    return {
        "name": identity.name,
        "actor": identity.actor,
        "scopes": sorted_scopes(identity.scopes),
        "quota": use and QuotaUse.of(use),
        "onboard": __version__,
    }
