"""The audit log: one row per change, written in the transaction of the change."""

from __future__ import annotations

import os
import pwd
import socket
from collections.abc import Sequence
from typing import Any

from sqlalchemy import insert, select
from sqlalchemy.orm import Session

from onboard.domain.access import AuditEntry, current_actor
from onboard.registry.access_tables import AuditRow
from onboard.registry.clock import database_now
from onboard.registry.repository import record_of


def record(session: Session, action: str, subject: str, **facts: Any) -> None:
    """Record a change by `actor()`.

    Args:
        action: such as "token.create".
        subject: the task, reference or id that changed.
        facts: JSON-compatible; never a secret.
    """
    row = {"actor": actor(), "action": action, "subject": subject, "facts": facts}
    session.execute(insert(AuditRow).values(at=database_now(), **row))


def entries(session: Session, limit: int, before: int | None = None) -> Sequence[AuditEntry]:
    """Return entries, newest first.

    Args:
        before: only entries with a lower id.
    """
    statement = select(AuditRow).order_by(AuditRow.id.desc()).limit(limit)
    if before is not None:
        statement = statement.where(AuditRow.id < before)
    return [record_of(AuditEntry, row) for row in session.scalars(statement)]


def actor() -> str:
    """Return the actor of the current context, or the user and machine of this process."""
    return current_actor() or machine_user()


def machine_user() -> str:
    """Return the user and machine of this process, such as "ops@gpu-a", for changes without a token."""
    try:
        user = pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:  # a container may run as a user without a name
        user = str(os.geteuid())
    return f"{user}@{socket.gethostname()}"
