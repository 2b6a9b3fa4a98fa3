"""The audit log: one row for every change that somebody made, written in the transaction of the change."""

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
    """Write down a change, and that `actor` made it.

    Args:
        action: what was done, such as "token.create".
        subject: to what: a task, a reference, an id.
        facts: JSON-compatible; never a secret.
    """
    row = {"actor": actor(), "action": action, "subject": subject, "facts": facts}
    session.execute(insert(AuditRow).values(at=database_now(), **row))


def entries(session: Session, limit: int, before: int | None = None) -> Sequence[AuditEntry]:
    """The newest changes first.

    Args:
        limit: at most so many.
        before: only entries with a lower id.
    """
    statement = select(AuditRow).order_by(AuditRow.id.desc()).limit(limit)
    if before is not None:
        statement = statement.where(AuditRow.id < before)
    return [record_of(AuditEntry, row) for row in session.scalars(statement)]


def actor() -> str:
    """Who changes things here: the one of `acting`, else the user and the machine of this process."""
    return current_actor() or machine_user()


def machine_user() -> str:
    """The user and the machine of this process, for changes that come by no token: "ops@gpu-a"."""
    try:
        user = pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:  # a container may run as a number without a name
        user = str(os.geteuid())
    return f"{user}@{socket.gethostname()}"
