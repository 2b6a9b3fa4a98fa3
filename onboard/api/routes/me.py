"""The caller: its token's scopes, and the version of the service."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends

from onboard import __version__
from onboard.api.access import signed_in
from onboard.api.deps import OpenServices
from onboard.api.quotas import quota_document
from onboard.contract.access import Me
from onboard.domain.access import Identity, sorted_scopes

router = APIRouter(prefix="/v1/me", tags=["access"])


@router.get("", response_model=Me)
def show_me(identity: Annotated[Identity, Depends(signed_in)], services: OpenServices) -> dict[str, Any]:
    """Return the caller's token with its limits, and the version of the service; accepts any token."""
    return {
        "name": identity.name,
        "actor": identity.actor,
        "scopes": sorted_scopes(identity.scopes),
        "quota": quota_document(services, identity.name),
        "onboard": __version__,
    }
