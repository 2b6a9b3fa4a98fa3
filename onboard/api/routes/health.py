"""Health, readiness and metrics of the service."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header, Request, Response
from prometheus_client.exposition import choose_encoder

from onboard.api.access import requires
from onboard.api.deps import OpenServices
from onboard.contract.operations import Health
from onboard.domain.access import Scope
from onboard.operations.health import require_usable

router = APIRouter(tags=["health"])


@router.get("/healthz", response_model=Health)
async def is_alive() -> dict[str, str]:
    """Return 200 if the process is alive, without checks and without waiting for a thread."""
    return {"status": "ok"}


@router.get("/readyz", response_model=Health)
def is_ready(services: OpenServices) -> dict[str, str]:
    """Return 200 if the database can be used, also by this release; else 503."""
    require_usable(services.database)
    return {"status": "ready"}


@router.get(
    "/metrics",
    response_class=Response,
    dependencies=[Depends(requires(Scope.OPS))],
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
)
def show_metrics(request: Request, accept: Annotated[str, Header(max_length=1000)] = "") -> Any:
    """Return metrics of the deployment, for Prometheus."""
    encode, media_type = choose_encoder(accept)
    return Response(encode(request.app.state.metrics), headers={"Content-Type": media_type})
