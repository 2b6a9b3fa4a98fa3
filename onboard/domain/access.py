"""Access control: scopes, the identity of a request, and tokens."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from onboard.errors import InputError

LEAST_LETTERS: Final = 32  # minimum length of tokens made elsewhere; our own have 43 random characters
LIFETIME: Final = "90d"  # default lifetime of a token
NEVER: Final = "never"
LONGEST_SECONDS: Final = 3650 * 86_400.0
_UNITS: Final = {"m": 60.0, "h": 3600.0, "d": 86_400.0, "w": 7 * 86_400.0}
_LIFETIME = re.compile(r"([0-9]{1,7})([mhdw])")
_GIVEN = re.compile(rf"[A-Za-z0-9._~+/=-]{{{LEAST_LETTERS},256}}")  # characters of a bearer token (RFC 6750)


class Scope(StrEnum):
    """A permission of a token. No scope includes another one."""

    SUBMIT = "submit"
    READ = "read"
    PROMOTE = "promote"
    OPS = "ops"
    ADMIN = "admin"


ALL_SCOPES: Final = frozenset(Scope)


@dataclass(frozen=True, slots=True)
class Identity:
    """The identity behind a request.

    Args:
        name: name of the token, of the person that an OpenID provider signed in (with an @), or "local" for the link
            that `onboard serve` printed.
        token: id of the token; None without one.
        session: id of the browser session if a cookie identified it, which other sites can make the browser send.
        use_due: whether to record the use of the token or session again.
    """

    name: str
    scopes: frozenset[Scope]
    token: str | None = None
    session: str | None = None
    use_due: bool = False

    def may(self, scope: Scope) -> bool:
        """Return whether this identity has the scope."""
        return scope in self.scopes

    @property
    def actor(self) -> str:
        """Name in the audit log and the history of aliases; it includes the id, as names may repeat."""
        return f"{self.name} ({self.token})" if self.token else self.name


@dataclass(frozen=True, slots=True)
class Token:
    """A bearer token, without its secret.

    Args:
        created_by: actor.
        expires_at: epoch seconds, like all times here; None means never.
        last_used_at: to the minute.
        max_jobs: limit of open jobs of all tokens of this name; None means no limit.
        max_bytes: limit of their stored bytes.
    """

    id: str
    name: str
    scopes: frozenset[Scope]
    created_at: float
    created_by: str
    expires_at: float | None = None
    revoked_at: float | None = None
    last_used_at: float | None = None
    max_jobs: int | None = None
    max_bytes: int | None = None

    def state(self, now: float) -> str:
        """Return active, expired or revoked."""
        if self.revoked_at is not None:
            return "revoked"
        return "expired" if self.expires_at is not None and self.expires_at <= now else "active"


@dataclass(frozen=True, slots=True)
class BrowserSession:
    """A signed-in browser.

    Args:
        name: name of its token, of the person that an OpenID provider signed in, or "local" for the link that
            `onboard serve` printed.
        token: id of that token; None for the others.
        expires_at: when it ends; a link's session if it is not used.
        is_of_link: whether the link began it.
    """

    id: str
    name: str
    token: str | None
    scopes: frozenset[Scope]
    created_at: float
    expires_at: float
    is_of_link: bool = False


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """An entry of the audit log.

    Args:
        at: epoch seconds.
        action: the action, such as "token.create".
        subject: its object: a task, a reference, an id.
        facts: numbers and names about it; never a secret.
    """

    id: int
    at: float
    actor: str
    action: str
    subject: str
    facts: dict[str, Any]


def sorted_scopes(scopes: Iterable[Scope]) -> list[str]:
    """Return scopes in the order of their definition, as in documents."""
    asked = set(scopes)
    return [scope.value for scope in Scope if scope in asked]


def known_scopes(names: Iterable[str]) -> frozenset[Scope]:
    """Return the stored scopes without those of later releases, which permit nothing here."""
    stored = set(names)
    return frozenset(scope for scope in Scope if scope in stored)


def read_scopes(names: Iterable[str]) -> frozenset[Scope]:
    """Parse scope names, each possibly several with commas. Raises InputError for an unknown one, and for none."""
    known = [scope.value for scope in Scope]
    given = [name.strip() for listed in names for name in listed.split(",")]
    if unknown := [name for name in given if name not in known]:
        raise InputError("unknown-scope", scope=unknown[0], known=list(known))
    if not given:
        raise InputError("scope-missing", known=list(known))
    return frozenset(Scope(name) for name in given)


def read_lifetime(text: str) -> float | None:
    """Parse a token's lifetime into seconds: "30d", "12h", "2w" or "45m"; None for "never".

    Raises:
        InputError: the duration is invalid or longer than ten years.
    """
    if text == NEVER:
        return None
    matched = _LIFETIME.fullmatch(text)
    seconds = int(matched[1]) * _UNITS[matched[2]] if matched else 0.0
    if not 0 < seconds <= LONGEST_SECONDS:
        raise InputError("lifetime-invalid", field="expires", text=text[:40])
    return seconds


def require_given_token(secret: str, where: str) -> str:
    """Return a token that was made elsewhere if it cannot be guessed, else raise InputError."""
    if not _GIVEN.fullmatch(secret):
        raise InputError("token-file-invalid", where=where, least_letters=LEAST_LETTERS)
    return secret


_ACTOR: ContextVar[str | None] = ContextVar("onboard_actor", default=None)


def current_actor() -> str | None:
    """Return the actor of the current request; None outside of `acting`."""
    return _ACTOR.get()


@contextmanager
def acting(actor: str) -> Iterator[None]:
    """Attribute changes inside the block to this actor, without passing it through every call."""
    restore = _ACTOR.set(actor)
    try:
        yield
    finally:
        _ACTOR.reset(restore)
