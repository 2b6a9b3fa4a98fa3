"""Who may do what: scopes, the identity behind a request, and the tokens that carry them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from onboard.errors import InputError

LEAST_LETTERS: Final = 32  # of a token that somebody else made; ours have 43 random ones
LIFETIME: Final = "90d"  # of a token when nobody says otherwise
NEVER: Final = "never"
LONGEST_SECONDS: Final = 3650 * 86_400.0
_UNITS: Final = {"m": 60.0, "h": 3600.0, "d": 86_400.0, "w": 7 * 86_400.0}
_LIFETIME = re.compile(r"([0-9]{1,7})([mhdw])")
_GIVEN = re.compile(rf"[A-Za-z0-9._~+/=-]{{{LEAST_LETTERS},256}}")  # what a bearer token may consist of (RFC 6750)


class Scope(StrEnum):
    """What a token allows. No scope includes another one."""

    SUBMIT = "submit"
    READ = "read"
    PROMOTE = "promote"
    OPS = "ops"
    ADMIN = "admin"


ALL_SCOPES: Final = frozenset(Scope)


@dataclass(frozen=True, slots=True)
class Identity:
    """Who asks.

    Args:
        name: of the token, or "local" for who came by the link that `onboard serve` printed.
        token: id of the token; None without one.
        session: id of the browser's session whose cookie said so, which other sites may make the browser send.
        use_due: whether the last use that is shown of the token, or that keeps the session open, is to be noted again.
    """

    name: str
    scopes: frozenset[Scope]
    token: str | None = None
    session: str | None = None
    use_due: bool = False

    def may(self, scope: Scope) -> bool:
        """Whether this identity has the scope."""
        return scope in self.scopes

    @property
    def actor(self) -> str:
        """How the audit log and the history of aliases name it: the name, and the id as names may repeat."""
        return f"{self.name} ({self.token})" if self.token else self.name


@dataclass(frozen=True, slots=True)
class Token:
    """A bearer token, without its secret.

    Args:
        created_by: actor.
        expires_at: epoch seconds, as all times here; None means never.
        last_used_at: to the minute.
    """

    id: str
    name: str
    scopes: frozenset[Scope]
    created_at: float
    created_by: str
    expires_at: float | None = None
    revoked_at: float | None = None
    last_used_at: float | None = None

    def state(self, now: float) -> str:
        """active, expired or revoked."""
        if self.revoked_at is not None:
            return "revoked"
        return "expired" if self.expires_at is not None and self.expires_at <= now else "active"


@dataclass(frozen=True, slots=True)
class BrowserSession:
    """A browser that is signed in.

    Args:
        name: of the token that it signed in with, or "local" for the link that `onboard serve` printed.
        token: id of that token; None for the link.
        expires_at: of the link's, unless it is used before.
    """

    id: str
    name: str
    token: str | None
    scopes: frozenset[Scope]
    created_at: float
    expires_at: float


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One change that somebody made.

    Args:
        at: epoch seconds.
        action: what was done, such as "token.create".
        subject: to what: a task, a reference, an id.
        facts: numbers and names that belong to it; never a secret.
    """

    id: int
    at: float
    actor: str
    action: str
    subject: str
    facts: dict[str, Any]


def sorted_scopes(scopes: Iterable[Scope]) -> list[str]:
    """Scopes in the order of their definition, as documents show them."""
    asked = set(scopes)
    return [scope.value for scope in Scope if scope in asked]


def read_scopes(names: Iterable[str]) -> frozenset[Scope]:
    """Scopes by their names, also several with commas between. Raises InputError for an unknown one, and for none."""
    known = [scope.value for scope in Scope]
    given = [name.strip() for listed in names for name in listed.split(",")]
    if unknown := [name for name in given if name not in known]:
        raise InputError("unknown-scope", scope=unknown[0], known=list(known))
    if not given:
        raise InputError("scope-missing", known=list(known))
    return frozenset(Scope(name) for name in given)


def read_lifetime(text: str) -> float | None:
    """How long a token lives, in seconds: "30d", "12h", "2w" or "45m"; None for "never".

    Raises:
        InputError: it is no such duration, or longer than ten years.
    """
    if text == NEVER:
        return None
    matched = _LIFETIME.fullmatch(text)
    seconds = int(matched[1]) * _UNITS[matched[2]] if matched else 0.0
    if not 0 < seconds <= LONGEST_SECONDS:
        raise InputError("lifetime-invalid", field="expires", text=text[:40])
    return seconds


def require_given_token(secret: str, where: str) -> str:
    """Return a token that was made elsewhere if nobody can guess it, else raise InputError."""
    if not _GIVEN.fullmatch(secret):
        raise InputError("token-file-invalid", where=where, least_letters=LEAST_LETTERS)
    return secret


_ACTOR: ContextVar[str | None] = ContextVar("onboard_actor", default=None)


def current_actor() -> str | None:
    """Who makes the changes of the present request; None outside of `acting`."""
    return _ACTOR.get()


@contextmanager
def acting(actor: str) -> Iterator[None]:
    """Changes within are this actor's: it stands in the audit log without being handed through every call."""
    restore = _ACTOR.set(actor)
    try:
        yield
    finally:
        _ACTOR.reset(restore)
