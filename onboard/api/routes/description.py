"""The description of the door: for generators of clients, and as a page for people."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Depends, Request
from fastapi.responses import HTMLResponse, JSONResponse

from onboard.api.access import requires
from onboard.api.page import render_description
from onboard.domain.access import Scope

router = APIRouter(include_in_schema=False, dependencies=[Depends(requires(Scope.READ))])


@router.get("/openapi.json")
def describe(request: Request) -> JSONResponse:
    """The OpenAPI document."""
    return JSONResponse(request.app.openapi())


@router.get("/docs")
def describe_to_people(request: Request) -> HTMLResponse:
    """The same as a page, without any script."""
    document: dict[str, Any] = request.app.openapi()
    return HTMLResponse(render_description(document))
