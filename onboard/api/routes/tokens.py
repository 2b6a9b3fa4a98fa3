"""Tokens: create, list, revoke; signed-in browsers; and the audit log."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Query

from onboard.api.access import requires
from onboard.api.deps import Cursor, Limit, OpenServices, decode_number
from onboard.contract.access import (
    ChangeList,
    QuotaRequest,
    QuotaUse,
    SessionDocument,
    SessionList,
    TokenCreated,
    TokenDocument,
    TokenList,
    TokenRequest,
)
from onboard.domain.access import Scope
from onboard.operations import access

router = APIRouter(prefix="/v1", tags=["access"], dependencies=[Depends(requires(Scope.ADMIN))])


@router.get("/tokens")
def list_tokens(
    services: OpenServices,
    include_ended: Annotated[bool, Query(alias="all", description="Include expired and revoked tokens.")] = False,
) -> TokenList:
    """List the valid tokens, without their secrets."""
    tokens = access.list_tokens(services.database, include_ended=include_ended)
    return TokenList(tokens=tuple(TokenDocument.of(token) for token in tokens))


@router.post("/tokens", status_code=201)
def create_token(body: TokenRequest, services: OpenServices) -> TokenCreated:
    """Create a token; its secret is returned only once."""
    limits = {"max_jobs": body.max_jobs, "max_bytes": body.max_bytes}
    token, secret = access.create_token(services.database, body.name, body.scopes, body.expires, limits)
    return TokenCreated.of(token, secret=secret)


@router.delete("/tokens/{token}")
def revoke_token(
    token: Annotated[str, Path(max_length=64, description="Id of a token, or its name if it is unique.")],
    services: OpenServices,
) -> TokenDocument:
    """Revoke a token permanently, effective from the next request."""
    return TokenDocument.of(access.revoke_token(services.database, token))


@router.patch("/quotas/{owner}")
def set_quota(
    owner: Annotated[str, Path(max_length=64, description="Name of a valid token.")],
    body: QuotaRequest,
    services: OpenServices,
) -> QuotaUse:
    """Change the limits of all tokens of this name. Fields that are left out keep their value; null lifts a limit."""
    return QuotaUse.of(access.set_quota(services.database, owner, body.limits()))


@router.get("/sessions")
def list_sessions(services: OpenServices) -> SessionList:
    """List the signed-in browsers."""
    return SessionList(sessions=tuple(map(SessionDocument.of, access.list_sessions(services.database))))


@router.delete("/sessions/{session}")
def end_session(
    session: Annotated[str, Path(max_length=64, description="Its id.")], services: OpenServices
) -> SessionDocument:
    """Sign a browser out, effective from the next request."""
    return SessionDocument.of(access.end_session(services.database, session))


@router.get("/audit", response_model=ChangeList)
def list_changes(services: OpenServices, limit: Limit = 50, cursor: Cursor = None) -> dict[str, Any]:
    """List who changed what, newest first."""
    return access.changes(services.database, limit, decode_number(cursor))
