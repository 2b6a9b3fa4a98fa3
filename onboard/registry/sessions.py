"""Signed-in browsers, and the single-use codes of the links that sign one in. Only digests are kept."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Final

from sqlalchemy import Row, Select, and_, case, delete, func, insert, or_, select, update

from onboard.domain.access import ALL_SCOPES, BrowserSession, Identity, Scope, sorted_scopes
from onboard.errors import NotFoundError
from onboard.registry.access_tables import SessionRow, SignInCodeRow, TokenRow
from onboard.registry.audit import record
from onboard.registry.clock import database_now, read_clock
from onboard.registry.repository import Repository
from onboard.registry.tokens import is_live

_IS_OF_LINK: Final = and_(SessionRow.token.is_(None), SessionRow.name.is_(None))
LOCAL = "local"  # the name of whoever came by the link that a start on this machine printed
_ID_LETTERS: Final = 12  # of the digest, which tells nothing of the cookie
_HEX: Final = frozenset("0123456789abcdef")


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

    def open(
        self,
        digest: str,
        token: str | None,
        lives_seconds: float,
        *,
        name: str | None = None,
        scopes: Collection[Scope] = (),
    ) -> None:
        """Begin a session, and forget those that are over.

        Args:
            digest: of what the cookie will say.
            token: id of the token that signed in; None for the link on this machine and for an OpenID provider.
            lives_seconds: until it ends.
            name: of whoever signed in by an OpenID provider.
            scopes: of that person.
        """
        self._session.execute(delete(SessionRow).where(SessionRow.expires_at <= database_now()))
        self._session.execute(
            insert(SessionRow).values(
                hash=digest, token=token, name=name, scopes=None if name is None else sorted_scopes(scopes),
                created_at=database_now(), expires_at=database_now() + lives_seconds,
            )
        )  # fmt: skip
        record(self._session, "session.open", token or name or LOCAL, id=_id_of(digest))

    def identity(self, digest: str, idle_seconds: float) -> Identity | None:
        """Who is signed in by this cookie; None when the session, or the token behind it, is over.

        Args:
            idle_seconds: that a link's session stays open without use: when half of it is over, its use is due.
        """
        row = self._session.execute(_open().where(SessionRow.hash == digest)).one_or_none()
        if row is None:
            return None
        session = _session_of(row)
        left = row.expires_at - row.now
        return Identity(
            name=session.name,
            scopes=session.scopes,
            token=session.token,
            session=session.id,
            use_due=session.is_of_link and left < idle_seconds / 2,
        )

    def list(self) -> Sequence[BrowserSession]:
        """The browsers that are signed in, oldest first."""
        rows = self._session.execute(_open().order_by(SessionRow.created_at, SessionRow.hash))
        return [_session_of(row) for row in rows]

    def used(self, id_: str, idle_seconds: float, longest_seconds: float) -> None:
        """Keep a link's session open for as long again, at most until so long after it began."""
        again, at_most = database_now() + idle_seconds, SessionRow.created_at + longest_seconds
        statement = update(SessionRow).where(SessionRow.hash.startswith(id_), _IS_OF_LINK)
        self._session.execute(statement.values(expires_at=case((at_most < again, at_most), else_=again)))

    def end(self, digest: str) -> None:
        """Sign a browser out."""
        self._end(digest)

    def end_by_id(self, id_: str) -> BrowserSession:
        """Sign a browser out by the id of its session. Raises NotFoundError."""
        named = {session.id: session for session in self.list()}.get(id_)
        if named is None or not _HEX.issuperset(id_):
            raise NotFoundError("unknown-session", session=id_)
        self._end(id_)
        return named

    def _end(self, beginning: str) -> None:
        statement = delete(SessionRow).where(SessionRow.hash.startswith(beginning))
        for ended in self._session.execute(
            statement.returning(SessionRow.hash, SessionRow.token, SessionRow.name)
        ).all():
            record(self._session, "session.end", ended.token or ended.name or LOCAL, id=_id_of(ended.hash))


def _open() -> Select[Any]:
    """Sessions that are not over, nor the tokens behind them."""
    return (
        select(
            SessionRow.hash, SessionRow.token, SessionRow.created_at, SessionRow.expires_at,
            func.coalesce(TokenRow.name, SessionRow.name).label("name"), SessionRow.scopes.label("own_scopes"),
            TokenRow.scopes, database_now().label("now"),
        )
        .select_from(SessionRow)
        .outerjoin(TokenRow, TokenRow.id == SessionRow.token)
        .where(
            SessionRow.expires_at > database_now(),
            or_(SessionRow.token.is_(None), TokenRow.id.is_not(None)),  # else it would become that of the link
            is_live(),
        )
    )  # fmt: skip


def _session_of(row: Row[Any]) -> BrowserSession:
    if row.name is None:
        return BrowserSession(
            _id_of(row.hash), LOCAL, None, ALL_SCOPES, row.created_at, row.expires_at, is_of_link=True
        )
    scopes = frozenset(map(Scope, row.own_scopes if row.token is None else row.scopes))
    return BrowserSession(_id_of(row.hash), row.name, row.token, scopes, row.created_at, row.expires_at)


def _id_of(digest: str) -> str:
    return digest[:_ID_LETTERS]
