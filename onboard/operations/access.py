"""Access control: tokens, browser sessions, and the checks at startup."""

from __future__ import annotations

import hashlib
import logging
import os
import secrets
import stat
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from onboard.contract.access import Change
from onboard.domain.access import (
    ALL_SCOPES,
    LIFETIME,
    BrowserSession,
    Identity,
    Token,
    acting,
    read_lifetime,
    read_scopes,
    require_given_token,
    sorted_scopes,
)
from onboard.domain.names import require_name
from onboard.domain.quota import Quota, Use, require_limits
from onboard.errors import InputError, NotAllowedError, OnboardError, SignInError
from onboard.registry import audit
from onboard.registry.database import Database
from onboard.registry.quotas import QuotaRepository
from onboard.registry.sessions import LOCAL, SessionRepository
from onboard.registry.tokens import USE_SHOWN_SECONDS, TokenRepository
from onboard.settings import SECRETS, Settings

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from onboard.domain.open_id import Person

BOOTSTRAP: Final = "bootstrap"
CODE_SECONDS: Final = 3600.0  # lifetime of a start link
SESSION_SECONDS: Final = 12 * 3600.0
IDLE_SECONDS: Final = 3600.0  # idle timeout of a session from a link, because it has every scope
_PREFIX: Final = "onb_"  # lets secret scanners recognize a token
_MOST_BYTES: Final = 4096  # of a token file
_logger = logging.getLogger(__name__)


def create_token(
    database: Database,
    name: str | None,
    scopes: Iterable[str],
    expires: str = LIFETIME,
    limits: Mapping[str, int | None] | None = None,
) -> tuple[Token, str]:
    """Create a token.

    Args:
        database: where it is kept.
        name: None names it after its scopes.
        expires: lifetime, such as 30d; `never` for a token that does not expire.
        limits: `max_jobs` and `max_bytes` of the name; a limit that is None or missing does not change.

    Returns:
        The token, and its secret, which is not stored anywhere.

    Raises:
        InputError: the name or a limit is invalid, a scope is unknown, or the lifetime cannot be read.
    """
    set_limits = {name: limit for name, limit in (limits or {}).items() if limit is not None}
    require_limits(set_limits)
    granted = read_scopes(scopes)
    token_name = require_name("-".join(sorted_scopes(granted)) if name is None else name, "token name")
    lives_seconds = read_lifetime(expires)
    secret = _PREFIX + secrets.token_urlsafe(32)
    with database.write() as session:
        token = TokenRepository(session).add(
            _new_id(), token_name, _digest(secret), granted, created_by=audit.actor(), lives_seconds=lives_seconds
        )
        assert token is not None  # 256 random bits do not repeat
        quotas = QuotaRepository(session)
        if set_limits:
            quotas.put(token_name, set_limits)
        return _limited([token], quotas)[0], secret


def list_tokens(database: Database, *, include_ended: bool = False) -> Sequence[Token]:
    """Return active tokens, or all of them, oldest first."""
    with database.read() as session:
        return _limited(TokenRepository(session).list(include_ended=include_ended), QuotaRepository(session))


def set_quota(database: Database, owner: str, limits: Mapping[str, int | None]) -> Use:
    """Change limits of an owner; those that are not named stay.

    Args:
        database: where they are kept.
        owner: name of its tokens.
        limits: `max_jobs` and `max_bytes`; None lifts a limit.

    Raises:
        InputError: a limit is negative, or none is given.
        NotFoundError: no valid token has that name.
    """
    if not limits:
        raise InputError("quota-without-limits", field="max_jobs")
    require_limits(limits)
    with database.write() as session:
        quotas = QuotaRepository(session)
        quota = quotas.put(owner, limits)
        return quotas.use(owner) or Use(quota.owner)


def quota_of(database: Database, owner: str) -> Use | None:
    """An owner's limits and what is used of them; None without a quota."""
    with database.read() as session:
        return QuotaRepository(session).use(owner)


def revoke_token(database: Database, which: str) -> Token:
    """Revoke a token by its id or its unique name. It is refused from the next request on.

    Raises:
        NotFoundError: the token does not exist.
        ConflictError: several tokens have that name.
    """
    with database.write() as session:
        return _limited([TokenRepository(session).revoke(which)], QuotaRepository(session))[0]


def identify(database: Database, secret: str) -> Identity:
    """Return the identity of a bearer token. If `use_due` is set, call `note_use` after answering.

    Raises:
        SignInError: it is unknown, expired or revoked.
    """
    with database.glance() as session:
        token_and_time = TokenRepository(session).find(_digest(secret))
    if token_and_time is None:
        raise SignInError("token-unknown")
    token, now = token_and_time
    if (state := token.state(now)) != "active":
        raise SignInError("token-not-valid", token=token.name, state=state)
    use_due = token.last_used_at is None or now - token.last_used_at >= USE_SHOWN_SECONDS
    return Identity(name=token.name, scopes=token.scopes, token=token.id, use_due=use_due)


def identify_session(database: Database, cookie: str) -> Identity:
    """Return the identity of a browser's cookie.

    Raises:
        SignInError: the session has ended, or its token is no longer valid.
    """
    with database.read() as session:
        identity = SessionRepository(session).identity(_digest(cookie), IDLE_SECONDS)
    if identity is None:
        raise SignInError("session-over")
    return identity


def note_use(database: Database, identity: Identity) -> None:
    """Record that a token, or the session of a link, was used just now.

    This writes to the database, so call it after answering. A busy database is not an error.
    """
    try:
        with database.write() as session:
            if identity.token is not None:
                TokenRepository(session).used(identity.token)
            elif identity.session is not None:
                SessionRepository(session).used(identity.session, IDLE_SECONDS, SESSION_SECONDS)
    except OnboardError as error:
        _logger.warning("The use of %s was not recorded: %s", identity.token or identity.session, error.message)


def sign_in(database: Database, secret: str) -> str:
    """Start a session with a token and return the cookie's value. Raises SignInError."""
    identity = identify(database, secret)
    with acting(identity.actor), database.write() as session:
        cookie = _begin_session(session, identity.token)
    if identity.use_due:
        note_use(database, identity)
    return cookie


def offer_code(database: Database) -> str:
    """Create the single-use code for the link of this start. Earlier codes become invalid."""
    code = secrets.token_urlsafe(32)
    with database.write() as session:
        SessionRepository(session).offer(_digest(code), CODE_SECONDS)
    return code


def sign_in_by_code(database: Database, code: str) -> str:
    """Use a link's code and start a session with every scope. Returns the cookie's value.

    Raises:
        SignInError: the code is unknown, used or expired.
    """
    with acting(LOCAL), database.write() as session:
        if SessionRepository(session).take(_digest(code)):
            return _begin_session(session, None, IDLE_SECONDS)
    raise SignInError("sign-in-link-used")


def sign_in_person(database: Database, person: Person) -> str:
    """Begin a session for whoever an OpenID provider signed in; returns what the cookie shall say."""
    with acting(person.name), database.write() as session:
        cookie = secrets.token_urlsafe(32)
        SessionRepository(session).open(_digest(cookie), None, SESSION_SECONDS, name=person.name, scopes=person.scopes)
    return cookie


def sign_out(database: Database, cookie: str) -> None:
    """End a browser's session."""
    with database.write() as session:
        SessionRepository(session).end(_digest(cookie))


def list_sessions(database: Database) -> Sequence[BrowserSession]:
    """Return the active browser sessions, oldest first."""
    with database.read() as session:
        return SessionRepository(session).list()


def end_session(database: Database, which: str) -> BrowserSession:
    """End a session by its id. Raises NotFoundError."""
    with database.write() as session:
        return SessionRepository(session).end_by_id(which)


def changes(database: Database, limit: int, before: int | None = None) -> dict[str, Any]:
    """Return a page of the audit log as a JSON-compatible document, newest first.

    Args:
        before: only entries with lower ids.

    Returns:
        `changes`, and `next`: the value of `before` for the next page, as text; None on the last page.
    """
    with database.read() as session:
        entries = audit.entries(session, limit + 1, before)
    older = str(entries[limit - 1].id) if len(entries) > limit else None
    return {"changes": [Change.of(entry).to_json() for entry in entries[:limit]], "next": older}


def adopt_bootstrap_token(database: Database, settings: Settings) -> None:
    """Give the token in ONBOARD_BOOTSTRAP_TOKEN_FILE every scope, and revoke the token of an earlier file.

    A token that was revoked manually stays revoked while the file contains it.

    Raises:
        InputError: the file contains no token, or one that is too easy to guess.
        NotAllowedError: the file cannot be read.
    """
    file = settings.bootstrap_token_file
    if file is None:
        return
    digest = _digest(require_given_token(_read_secret(file), str(file)))
    with database.write() as session:
        tokens = TokenRepository(session)
        if (existing := tokens.find(digest)) is not None:
            if (state := existing[0].state(existing[1])) != "active":
                _logger.warning("The bootstrap token in %s is %s: write another one to the file.", file, state)
            return
        earlier = tokens.find_named(BOOTSTRAP)
        if tokens.add(_new_id(), BOOTSTRAP, digest, ALL_SCOPES, created_by=str(file)) is not None:
            for token in earlier:
                tokens.revoke(token.id)


def require_some_token(database: Database, host: str) -> None:
    """Refuse to listen on a network address if nobody could sign in.

    Raises:
        NotAllowedError: there is no active token.
    """
    with database.read() as session:
        any_live = TokenRepository(session).any_live()
    if not any_live:
        raise NotAllowedError("host-without-token", host=host)


def _read_secret(file: Path) -> str:
    try:
        with file.open("rb") as opened:
            readable_by_all = os.fstat(opened.fileno()).st_mode & stat.S_IROTH
            content = opened.read(_MOST_BYTES)
    except OSError as error:
        raise NotAllowedError("bootstrap-token-unreadable", file=str(file), reason=error.strerror) from error
    if readable_by_all and not file.is_relative_to(SECRETS):  # in a container, nobody else can read its secrets
        _logger.warning("Everyone on this machine can read the bootstrap token: chmod 600 %s", file)
    return content.decode("utf-8", "replace").strip()


def _limited(tokens: Sequence[Token], quotas: QuotaRepository) -> list[Token]:
    """The tokens with the limits of their names."""
    quotas_by_name = quotas.of([token.name for token in tokens])
    with_limits = []
    for token in tokens:
        quota = quotas_by_name.get(token.name) or Quota(token.name)
        with_limits.append(replace(token, max_jobs=quota.max_jobs, max_bytes=quota.max_bytes))
    return with_limits


def _begin_session(session: Session, token: str | None, lives_seconds: float = SESSION_SECONDS) -> str:
    cookie = secrets.token_urlsafe(32)
    SessionRepository(session).open(_digest(cookie), token, lives_seconds)
    return cookie


def _digest(secret: str) -> str:
    """Return a fast digest, which is safe for 256 random bits. A lookup reveals nothing about similar secrets."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def _new_id() -> str:
    return secrets.token_hex(6)
