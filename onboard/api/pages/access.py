"""Pages for tokens and the audit log."""

from __future__ import annotations

from typing import Annotated, Final

from fastapi import APIRouter, Depends, Form, Query, Request
from starlette.responses import Response

from onboard.api.access import requires
from onboard.api.deps import OpenServices, decode_number
from onboard.api.pages.frame import page, to
from onboard.contract.access import SessionDocument, TokenDocument
from onboard.domain.access import LIFETIME, Scope
from onboard.domain.quota import read_limit
from onboard.operations.access import (
    changes,
    create_token,
    end_session,
    list_sessions,
    list_tokens,
    revoke_token,
    set_quota,
)

PAGE: Final = 100  # changes
_MOST_LETTERS: Final = 64
_ADMIN: Final = [Depends(requires(Scope.ADMIN))]

Limit = Annotated[str, Form(max_length=_MOST_LETTERS)]

router = APIRouter(include_in_schema=False, dependencies=_ADMIN)


@router.get("/tokens")
@router.get("/tokens.json")
def show_tokens(
    request: Request, services: OpenServices, include_ended: Annotated[bool, Query(alias="all")] = False
) -> Response:
    """Show the valid tokens, or all of them, without secrets; and the signed-in browsers."""
    tokens = list_tokens(services.database, include_ended=include_ended)
    sessions = [SessionDocument.of(session).to_json() for session in list_sessions(services.database)]
    document = {"tokens": [TokenDocument.of(token).to_json() for token in tokens], "sessions": sessions}
    return page(request, "tokens.html", document, everything=include_ended, scopes=list(Scope), lifetime=LIFETIME)


@router.post("/tokens")
def make_token(
    request: Request,
    services: OpenServices,
    scope: Annotated[list[str] | None, Form(max_length=len(Scope))] = None,
    name: Annotated[str, Form(max_length=_MOST_LETTERS)] = "",
    expires: Annotated[str, Form(max_length=_MOST_LETTERS)] = LIFETIME,
    max_jobs: Limit = "",
    max_bytes: Limit = "",
) -> Response:
    """Create a token; its secret is shown only once."""
    limits = _limits(max_jobs, max_bytes)
    token, secret = create_token(services.database, name.strip() or None, scope or [], expires.strip(), limits)
    return page(request, "token.html", TokenDocument.of(token), secret=secret)


@router.post("/tokens/limit")
def limit_owner(
    services: OpenServices,
    owner: Annotated[str, Form(max_length=_MOST_LETTERS)],
    max_jobs: Limit = "",
    max_bytes: Limit = "",
) -> Response:
    """Change the limits of all tokens of a name; an empty field changes nothing, `none` lifts a limit."""
    set_quota(services.database, owner.strip(), _limits(max_jobs, max_bytes))
    return to("/tokens")


@router.post("/tokens/revoke")
def end_token(services: OpenServices, token: Annotated[str, Form(max_length=_MOST_LETTERS)]) -> Response:
    """Revoke a token permanently."""
    revoke_token(services.database, token)
    return to("/tokens")


@router.post("/sessions/end")
def sign_browser_out(services: OpenServices, session: Annotated[str, Form(max_length=_MOST_LETTERS)]) -> Response:
    """Sign a browser out."""
    end_session(services.database, session)
    return to("/tokens")


@router.get("/audit")
@router.get("/audit.json")
def show_changes(
    request: Request, services: OpenServices, before: Annotated[str | None, Query(max_length=_MOST_LETTERS)] = None
) -> Response:
    """Show who changed what, newest first."""
    return page(request, "audit.html", changes(services.database, PAGE, decode_number(before)), before=before)


def _limits(max_jobs: str, max_bytes: str) -> dict[str, int | None]:
    """The limits of a form. Raises InputError."""
    given = {"max_jobs": max_jobs.strip(), "max_bytes": max_bytes.strip()}
    return {field: read_limit(text, field) for field, text in given.items() if text}
