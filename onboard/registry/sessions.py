"""Signed-in browsers, and the single-use codes of the links that sign one in. Only digests are kept."""

from __future__ import annotations

from sqlalchemy import delete, insert, or_, select

from onboard.domain.access import ALL_SCOPES, Identity, Scope
from onboard.registry.access_tables import SessionRow, SignInCodeRow, TokenRow
from onboard.registry.audit import record
from onboard.registry.clock import database_now, read_clock
from onboard.registry.repository import Repository
from onboard.registry.tokens import is_live

LOCAL = "local"  # the name of whoever came by the link that a start on this machine printed


class SessionRepository(Repository):
    """The sessions of browsers."""

    def offer(self, digest: str, lives_seconds: float) -> None:
        """Keep the code of a link. Earlier ones are over: only the newest start's link signs in."""
        self._session.execute(delete(SignInCodeRow))
        self._session.execute(insert(SignInCodeRow).values(hash=digest, expires_at=database_now() + lives_seconds))

    def take(self, digest: str) -> bool:
        """Use a code up. False when it is unknown, used or too old; of two at once one gets True."""
        statement = delete(SignInCodeRow).where(SignInCodeRow.hash == digest).returning(SignInCodeRow.expires_at)
        expires_at = self._session.scalars(statement).one_or_none()
        return expires_at is not None and expires_at > read_clock(self._session)

    def open(self, digest: str, token: str | None, lives_seconds: float) -> None:
        """Begin a session, and forget those that are over.

        Args:
            digest: of what the cookie will say.
            token: id of the token that signed in; None for the link on this machine.
        """
        self._session.execute(delete(SessionRow).where(SessionRow.expires_at <= database_now()))
        self._session.execute(
            insert(SessionRow).values(
                hash=digest, token=token, created_at=database_now(), expires_at=database_now() + lives_seconds
            )
        )
        record(self._session, "session.open", token or LOCAL)

    def identity(self, digest: str) -> Identity | None:
        """Who is signed in by this cookie; None when the session, or the token behind it, is over."""
        statement = (
            select(TokenRow.id, TokenRow.name, TokenRow.scopes)
            .select_from(SessionRow)
            .outerjoin(TokenRow, TokenRow.id == SessionRow.token)
            .where(
                SessionRow.hash == digest,
                SessionRow.expires_at > database_now(),
                or_(SessionRow.token.is_(None), TokenRow.id.is_not(None)),  # else it would become that of the link
                is_live(),
            )
        )
        row = self._session.execute(statement).one_or_none()
        if row is None:
            return None
        if row.id is None:
            return Identity(name=LOCAL, scopes=ALL_SCOPES, session=True)
        return Identity(name=row.name, scopes=frozenset(map(Scope, row.scopes)), token=row.id, session=True)

    def end(self, digest: str) -> None:
        """Sign a browser out."""
        statement = delete(SessionRow).where(SessionRow.hash == digest).returning(SessionRow.hash, SessionRow.token)
        if (ended := self._session.execute(statement).one_or_none()) is not None:
            record(self._session, "session.end", ended.token or LOCAL)
