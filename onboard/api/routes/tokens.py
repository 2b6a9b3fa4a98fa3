"""Tokens: made, listed, revoked; signed-in browsers; and the log of every change."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Query

from onboard.api.access import requires
from onboard.api.deps import Cursor, Limit, OpenServices, decode_number
from onboard.contract.access import (
    ChangeList,
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


@router.get("/tokens", response_model=TokenList)
def list_tokens(
    services: OpenServices,
    include_ended: Annotated[bool, Query(alias="all", description="Also those that are expired or revoked.")] = False,
) -> dict[str, Any]:
    """The tokens that work now, without their secrets."""
    tokens = access.list_tokens(services.database, include_ended=include_ended)
    return {"tokens": [token.to_json() for token in tokens]}


@router.post("/tokens", response_model=TokenCreated, status_code=201)
def create_token(body: TokenRequest, services: OpenServices) -> dict[str, Any]:
    """Make a token; its secret is shown this once."""
    token, secret = access.create_token(services.database, body.name, body.scopes, body.expires)
    return {**token.to_json(), "secret": secret}


@router.delete("/tokens/{token}", response_model=TokenDocument)
def revoke_token(
    token: Annotated[str, Path(max_length=64, description="Its id, or a name that only one token has.")],
    services: OpenServices,
) -> dict[str, Any]:
    """End a token for good; it is refused from the next request on."""
    return access.revoke_token(services.database, token).to_json()


@router.get("/sessions", response_model=SessionList)
def list_sessions(services: OpenServices) -> dict[str, Any]:
    """The browsers that are signed in, by a token or by the link of a start."""
    return {"sessions": [session.to_json() for session in access.list_sessions(services.database)]}


@router.delete("/sessions/{session}", response_model=SessionDocument)
def end_session(
    session: Annotated[str, Path(max_length=64, description="Its id.")], services: OpenServices
) -> dict[str, Any]:
    """Sign a browser out; it is refused from the next request on."""
    return access.end_session(services.database, session).to_json()


@router.get("/audit", response_model=ChangeList)
def list_changes(services: OpenServices, limit: Limit = 50, cursor: Cursor = None) -> dict[str, Any]:
    """Who changed what, newest first."""
    return access.changes(services.database, limit, decode_number(cursor))
