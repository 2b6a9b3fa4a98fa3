"""The API description for client generators; `pages/reference.py` shows it to people."""

from __future__ import annotations

from fastapi import APIRouter, Depends, Request
from fastapi.responses import JSONResponse

from onboard.api.access import requires
from onboard.domain.access import Scope

router = APIRouter(include_in_schema=False, dependencies=[Depends(requires(Scope.READ))])


@router.get("/openapi.json")
def describe(request: Request) -> JSONResponse:
    """Return the OpenAPI document."""
    return JSONResponse(request.app.openapi())
