"""The tables for access control: tokens, sessions, sign-in codes and the audit log."""

from __future__ import annotations

from typing import Any

from sqlalchemy import JSON, ForeignKey
from sqlalchemy.orm import Mapped, mapped_column

from onboard.registry.declared import BigNumber, Table


class TokenRow(Table):
    """A bearer token. Only a digest of its secret is stored."""

    __tablename__ = "tokens"
    id: Mapped[str] = mapped_column(primary_key=True)
    name: Mapped[str]
    hash: Mapped[str] = mapped_column(unique=True)
    scopes: Mapped[list[Any]]
    created_at: Mapped[float]
    created_by: Mapped[str]
    expires_at: Mapped[float | None]
    revoked_at: Mapped[float | None]
    last_used_at: Mapped[float | None]


class SessionRow(Table):
    """A browser session, started with a token, with an OpenID provider, or with the link printed at startup.

    Only those of a provider have a name and scopes; those of a token have the token's.
    """

    __tablename__ = "sessions"
    hash: Mapped[str] = mapped_column(primary_key=True)
    token: Mapped[str | None] = mapped_column(ForeignKey("tokens.id", ondelete="CASCADE"))
    name: Mapped[str | None]
    scopes: Mapped[list[Any] | None] = mapped_column(JSON(none_as_null=True))
    created_at: Mapped[float]
    expires_at: Mapped[float]


class SignInCodeRow(Table):
    """The code of a startup link. Using it deletes the row."""

    __tablename__ = "sign_in_codes"
    hash: Mapped[str] = mapped_column(primary_key=True)
    expires_at: Mapped[float]


class AuditRow(Table):
    """One change made by an actor."""

    __tablename__ = "audit_log"
    id: Mapped[int] = mapped_column(BigNumber, primary_key=True)
    at: Mapped[float]
    actor: Mapped[str]
    action: Mapped[str]
    subject: Mapped[str]
    facts: Mapped[dict[str, Any]]
