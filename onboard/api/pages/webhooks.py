"""The page of webhooks: pending deliveries by endpoint, with errors."""

from __future__ import annotations

from dataclasses import asdict
from typing import Final

from fastapi import APIRouter, Depends, Request
from starlette.responses import Response

from onboard.api.access import requires
from onboard.api.deps import OpenServices
from onboard.api.pages.frame import page
from onboard.domain.access import Scope
from onboard.operations.health import webhook_standing

_OPS: Final = [Depends(requires(Scope.OPS))]

router = APIRouter(include_in_schema=False)


@router.get("/webhooks", dependencies=_OPS)
@router.get("/webhooks.json", dependencies=_OPS)
def show_webhooks(request: Request, services: OpenServices) -> Response:
    """Show the state of deliveries by endpoint, without delivered ones."""
    document = {"endpoints": [asdict(endpoint) for endpoint in webhook_standing(services.database)]}
    return page(request, "webhooks.html", document)
