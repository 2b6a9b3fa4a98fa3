"""The caller: its token's scopes, and the version of the service."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends

from onboard import __version__
from onboard.api.access import signed_in
from onboard.contract.access import Me
from onboard.domain.access import Identity, sorted_scopes

router = APIRouter(prefix="/v1/me", tags=["access"])


@router.get("", response_model=Me)
async def show_me(identity: Annotated[Identity, Depends(signed_in)]) -> dict[str, Any]:
    """Return the caller's token and the version of the service; accepts any token."""
    return {
        "name": identity.name,
        "actor": identity.actor,
        "scopes": sorted_scopes(identity.scopes),
        "onboard": __version__,
    }
