"""Tokens in the database. Only digests of their secrets are stored."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from sqlalchemy import ColumnElement, and_, bindparam, or_, select, update

from onboard.domain.access import Scope, Token, known_scopes, sorted_scopes
from onboard.domain.moment import to_iso
from onboard.errors import ConflictError, NotFoundError
from onboard.registry.access_tables import TokenRow
from onboard.registry.audit import record
from onboard.registry.clock import database_now
from onboard.registry.repository import Repository, record_of
from onboard.registry.upsert import insert_for

USE_SHOWN_SECONDS: Final = 60  # precision of the last use, so that not every read causes a write
# prepared, because every request runs it
_BY_HASH: Final = select(TokenRow, database_now()).where(TokenRow.hash == bindparam("hash"))


class TokenRepository(Repository):
    """The tokens of the deployment."""

    def add(
        self,
        id_: str,
        name: str,
        digest: str,
        scopes: frozenset[Scope],
        *,
        created_by: str,
        lives_seconds: float | None = None,
    ) -> Token | None:
        """Add a token. None if its secret exists already, because another process with the same file added it.

        Args:
            lives_seconds: until it expires; None means never.
        """
        values = {"id": id_, "name": name, "hash": digest, "scopes": sorted_scopes(scopes), "created_by": created_by}
        expires = None if lives_seconds is None else database_now() + lives_seconds
        statement = (
            insert_for(self._session, TokenRow)
            .values(created_at=database_now(), expires_at=expires, **values)
            .on_conflict_do_nothing(index_elements=["hash"])
        )
        row = self._session.scalars(statement.returning(TokenRow)).one_or_none()
        if row is None:
            return None
        token = _token(row)
        record(self._session, "token.create", id_, name=name, **_given(token))
        return token

    def find(self, digest: str) -> tuple[Token, float] | None:
        """Return the token with this secret digest, and the database's time; None if it does not exist."""
        row = self._session.execute(_BY_HASH, {"hash": digest}).one_or_none()
        return None if row is None else (_token(row[0]), row[1])

    def find_named(self, name: str) -> Sequence[Token]:
        """Return every token of that name that is not revoked."""
        return self._named(name, TokenRow.revoked_at.is_(None))

    def list(self, *, include_ended: bool = False) -> Sequence[Token]:
        """Return active tokens, or all of them, oldest first."""
        statement = select(TokenRow).order_by(TokenRow.created_at, TokenRow.id)
        if not include_ended:
            statement = statement.where(is_live())
        return [_token(row) for row in self._session.scalars(statement)]

    def any_live(self) -> bool:
        """Return whether any token is active."""
        return self._session.scalars(select(TokenRow.id).where(is_live()).limit(1)).first() is not None

    def used(self, id_: str) -> None:
        """Record that the token was used just now."""
        self._session.execute(update(TokenRow).where(TokenRow.id == id_).values(last_used_at=database_now()))

    def revoke(self, which: str) -> Token:
        """Revoke a token. Repeating it changes nothing.

        Args:
            which: its id, or its name if that is unique among active tokens (or else among expired ones).

        Raises:
            NotFoundError: the token does not exist.
            ConflictError: several tokens have that name.
        """
        id_ = self._id_of(which)
        statement = update(TokenRow).where(TokenRow.id == id_, TokenRow.revoked_at.is_(None))
        ended = self._session.execute(statement.values(revoked_at=database_now()).returning(TokenRow.name)).first()
        token = _token(self._session.scalars(select(TokenRow).where(TokenRow.id == id_)).one())
        if ended is not None:
            record(self._session, "token.revoke", token.id, name=token.name)
        return token

    def revoke_all(self) -> int:
        """Revoke every active token and return their number."""
        ended = update(TokenRow).where(is_live()).values(revoked_at=database_now()).returning(TokenRow.id)
        return len(self._session.scalars(ended).all())

    def _id_of(self, which: str) -> str:
        by_id = self._session.scalars(select(TokenRow.id).where(TokenRow.id == which)).one_or_none()
        if by_id is not None:
            return by_id
        named = self._named(which, is_live()) or self.find_named(which)
        if not named:
            raise NotFoundError("unknown-token", token=which)
        if len(named) > 1:
            ids = [token.id for token in named]
            raise ConflictError("token-name-ambiguous", count=len(ids), which=which, ids=list(ids))
        return named[0].id

    def _named(self, name: str, condition: ColumnElement[bool]) -> Sequence[Token]:
        statement = select(TokenRow).where(TokenRow.name == name, condition).order_by(TokenRow.created_at, TokenRow.id)
        return [_token(row) for row in self._session.scalars(statement)]


def is_live() -> ColumnElement[bool]:
    """Condition: the token is active. True if there is no token, as in an outer join."""
    return and_(TokenRow.revoked_at.is_(None), or_(TokenRow.expires_at.is_(None), TokenRow.expires_at > database_now()))


def _given(token: Token) -> dict[str, object]:
    return {"scopes": sorted_scopes(token.scopes), "expires_at": to_iso(token.expires_at)}


def _token(row: TokenRow) -> Token:
    return record_of(Token, row, scopes=known_scopes(row.scopes), max_jobs=None, max_bytes=None)
