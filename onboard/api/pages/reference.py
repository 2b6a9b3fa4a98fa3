"""The API reference: Swagger UI, which ships with the package, on the OpenAPI document."""

from __future__ import annotations

from fastapi import APIRouter, Depends, Request
from starlette.responses import HTMLResponse, Response

from onboard.api.access import requires
from onboard.api.pages.frame import rendered
from onboard.domain.access import Scope

router = APIRouter(include_in_schema=False, dependencies=[Depends(requires(Scope.READ))])


@router.get("/docs")
def show_reference(request: Request) -> Response:
    """Show every operation, with examples that can be sent from the page."""
    return HTMLResponse(rendered(request, "reference.html"))
