"""Browser sessions, and the single-use codes of sign-in links. Only digests are stored."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Final

from sqlalchemy import Row, Select, and_, case, delete, func, insert, or_, select, update

from onboard.domain.access import ALL_SCOPES, BrowserSession, Identity, Scope, known_scopes, sorted_scopes
from onboard.errors import NotFoundError
from onboard.registry.access_tables import SessionRow, SignInCodeRow, TokenRow
from onboard.registry.audit import record
from onboard.registry.clock import database_now, read_clock
from onboard.registry.repository import Repository
from onboard.registry.tokens import is_live

_IS_OF_LINK: Final = and_(SessionRow.token.is_(None), SessionRow.name.is_(None))
LOCAL = "local"  # name of users who signed in with the link printed at startup
_ID_LETTERS: Final = 12  # of the digest, which does not reveal the cookie
_HEX: Final = frozenset("0123456789abcdef")


class SessionRepository(Repository):
    """The sessions of browsers."""

    def offer(self, digest: str, lives_seconds: float) -> None:
        """Store the code of a link and delete earlier ones, so that only the newest link works."""
        self._session.execute(delete(SignInCodeRow))
        self._session.execute(insert(SignInCodeRow).values(hash=digest, expires_at=database_now() + lives_seconds))

    def take(self, digest: str) -> bool:
        """Use up a code. False if it is unknown, used or expired. Of two concurrent calls, one gets True."""
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
        """Start a session and delete expired ones.

        Args:
            digest: digest of the cookie's value.
            token: id of the token that signed in; None for the link on this machine and for an OpenID provider.
            name: of the person who signed in with an OpenID provider.
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
        """Return the identity of a cookie; None if the session has ended or its token is no longer valid.

        Args:
            idle_seconds: idle timeout of a link's session. `use_due` is set when less than half of it is left.
        """
        row = self._session.execute(_open().where(SessionRow.hash == digest)).one_or_none()
        if row is None:
            return None
        session = _session_of(row)
        left_seconds = row.expires_at - row.now
        return Identity(
            name=session.name,
            scopes=session.scopes,
            token=session.token,
            session=session.id,
            use_due=session.is_of_link and left_seconds < idle_seconds / 2,
        )

    def list(self) -> Sequence[BrowserSession]:
        """Return the active sessions, oldest first."""
        rows = self._session.execute(_open().order_by(SessionRow.created_at, SessionRow.hash))
        return [_session_of(row) for row in rows]

    def used(self, id_: str, idle_seconds: float, longest_seconds: float) -> None:
        """Extend a link's session by the idle timeout, at most to its maximum lifetime."""
        again, at_most = database_now() + idle_seconds, SessionRow.created_at + longest_seconds
        statement = update(SessionRow).where(SessionRow.hash.startswith(id_), _IS_OF_LINK)
        self._session.execute(statement.values(expires_at=case((at_most < again, at_most), else_=again)))

    def end(self, digest: str) -> None:
        """End a session by the digest of its cookie."""
        self._end(digest)

    def end_by_id(self, id_: str) -> BrowserSession:
        """End a session by its id. Raises NotFoundError."""
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
    """Select sessions that have not expired and have a valid token, if any."""
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
            # without this, a session of a deleted token would count as one of the link
            or_(SessionRow.token.is_(None), TokenRow.id.is_not(None)),
            is_live(),
        )
    )  # fmt: skip


def _session_of(row: Row[Any]) -> BrowserSession:
    if row.name is None:
        return BrowserSession(
            _id_of(row.hash), LOCAL, None, ALL_SCOPES, row.created_at, row.expires_at, is_of_link=True
        )
    scopes = known_scopes(row.own_scopes if row.token is None else row.scopes)
    return BrowserSession(_id_of(row.hash), row.name, row.token, scopes, row.created_at, row.expires_at)


def _id_of(digest: str) -> str:
    return digest[:_ID_LETTERS]
