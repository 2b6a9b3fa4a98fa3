"""Tokens and the audit log."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, Field

from onboard.contract.document import Document
from onboard.domain.access import LIFETIME, Scope, sorted_scopes
from onboard.domain.quota import MOST


def _in_order(scopes: Any) -> Any:
    """Sort a record's set of scopes; return the list of a response unchanged."""
    if isinstance(scopes, frozenset | list):
        return tuple(map(Scope, sorted_scopes(scopes) if isinstance(scopes, frozenset) else scopes))
    return scopes


Scopes = Annotated[tuple[Scope, ...], BeforeValidator(_in_order)]


MaxJobs = Annotated[
    int | None,
    Field(ge=0, le=MOST, description="Queued and running jobs of all tokens of this name; 0 allows none, null any."),
]
MaxBytes = Annotated[
    int | None,
    Field(ge=0, le=MOST, description="Stored bytes of all tokens of this name; 0 allows none, null any."),
]


class TokenRequest(BaseModel, extra="forbid"):
    """A request for a new token."""

    name: Annotated[str | None, Field(max_length=64, description="Name of the token; names may repeat.")] = None
    scopes: Annotated[list[Scope], Field(min_length=1, max_length=len(Scope), description="Scopes of the token.")]
    expires: Annotated[str, Field(max_length=16, description="Lifetime: 30d, 12h, 2w, 45m or never.")] = LIFETIME
    max_jobs: MaxJobs = None
    max_bytes: MaxBytes = None


class QuotaRequest(BaseModel, extra="forbid"):
    """Limits of an owner. Fields that are left out keep their value."""

    max_jobs: MaxJobs = None
    max_bytes: MaxBytes = None

    def limits(self) -> dict[str, int | None]:
        """The fields that were sent."""
        return self.model_dump(exclude_unset=True)


class QuotaUse(Document):
    """An owner's open jobs and, if they are limited, stored bytes. The tokens of one name are one owner."""

    owner: str
    queued: int
    running: int
    max_jobs: Annotated[int | None, Field(description="Limit of queued and running jobs; null without one.")]
    jobs_left: Annotated[int | None, Field(description="How many more may be queued; null without a limit.")]
    bytes: Annotated[int | None, Field(description="Stored datasets and versions; null where they are not limited.")]
    max_bytes: Annotated[int | None, Field(description="Limit of stored bytes; null without one.")]
    bytes_left: Annotated[int | None, Field(description="How many more may be stored; null without a limit.")]


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
    max_jobs: Annotated[int | None, Field(description="Limit of open jobs of its name; null without one.")] = None
    max_bytes: Annotated[int | None, Field(description="Limit of stored bytes of its name; null without one.")] = None


class TokenCreated(TokenDocument):
    """A new token. Its secret is only shown here."""

    secret: str


class Me(Document):
    """The owner of the token, and the version of the service."""

    name: str
    actor: Annotated[str, Field(description="The name of this token in the audit log and in the history of aliases.")]
    scopes: Scopes
    onboard: Annotated[str, Field(description="Version of the service.")]
    quota: Annotated[QuotaUse | None, Field(description="Its limits and what is used of them; null without any.")] = (
        None
    )


class TokenList(Document):
    """Tokens, oldest first."""

    tokens: tuple[TokenDocument, ...]


class SessionDocument(Document):
    """A signed-in browser."""

    id: str
    name: Annotated[
        str,
        Field(
            description="Name of the token that signed in, or of a person with an @; `local` for the link of "
            "`onboard serve`."
        ),
    ]
    token: Annotated[str | None, Field(description="Id of that token; null for people and for the link.")]
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
