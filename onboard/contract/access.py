"""Tokens and the audit log."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, Field

from onboard.contract.document import Document
from onboard.domain.access import LIFETIME, Scope, sorted_scopes


def _in_order(scopes: Any) -> Any:
    """Sort a record's set of scopes; return the list of a response unchanged."""
    if isinstance(scopes, frozenset | list):
        return tuple(map(Scope, sorted_scopes(scopes) if isinstance(scopes, frozenset) else scopes))
    return scopes


Scopes = Annotated[tuple[Scope, ...], BeforeValidator(_in_order)]


class TokenRequest(BaseModel, extra="forbid"):
    """A request for a new token."""

    name: Annotated[str | None, Field(max_length=64, description="Whose it is; names may repeat.")] = None
    scopes: Annotated[list[Scope], Field(min_length=1, max_length=len(Scope), description="What it allows.")]
    expires: Annotated[str, Field(max_length=16, description="After 30d, 12h, 2w or 45m; or never.")] = LIFETIME


class TokenDocument(Document):
    """A token without its secret."""

    id: str
    name: str
    scopes: Scopes
    created_at: str
    created_by: str
    expires_at: str | None
    revoked_at: str | None
    last_used_at: Annotated[str | None, Field(description="To the minute.")]


class TokenCreated(TokenDocument):
    """A new token. Its secret is only shown here."""

    secret: str


class Me(Document):
    """The owner of the token, and the version of the service."""

    name: str
    actor: Annotated[str, Field(description="How the audit log and the history of aliases name this token.")]
    scopes: Scopes
    onboard: Annotated[str, Field(description="Version of the service.")]


class TokenList(Document):
    """Tokens, oldest first."""

    tokens: tuple[TokenDocument, ...]


class SessionDocument(Document):
    """A signed-in browser."""

    id: str
    name: Annotated[str, Field(description="Of the token that it signed in with; `local`: by the link of a start.")]
    token: Annotated[str | None, Field(description="Id of that token; null for the link.")]
    scopes: Scopes
    created_at: str
    expires_at: Annotated[str, Field(description="A link's session is extended by an hour while it is used.")]


class SessionList(Document):
    """Signed-in browsers, oldest first."""

    sessions: tuple[SessionDocument, ...]


class Change(Document):
    """One change, and who made it."""

    id: int
    at: str
    actor: str
    action: str
    subject: str
    facts: dict[str, Any]


class ChangeList(Document):
    """Changes, newest first."""

    changes: tuple[Change, ...]
    next: str | None
