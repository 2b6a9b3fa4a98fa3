"""A lock for maintenance: garbage collection would delete artifacts that a backup is about to copy."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Final

from onboard.errors import ConflictError, UnavailableError
from onboard.registry.compatibility import require_current
from onboard.registry.database import Database
from onboard.registry.leases import LeaseRepository

_LEASE: Final = "maintenance"
LEASE_SECONDS: Final = 300.0  # how long a killed process blocks the next one
_RENEW_SECONDS: Final = 60.0


@contextmanager
def alone(database: Database, what: str) -> Iterator[Callable[[], None]]:
    """Acquire the maintenance lock. Call the yielded function at least every few minutes to renew it.

    Raises:
        ConflictError: other maintenance is running, or took over because the lock was not renewed in time; or the
            schema is that of a later release, whose tables this one does not know.
    """
    holder = f"{what} on {socket.gethostname()} (process {os.getpid()})"
    _take(database, holder)
    taken_at = time.monotonic()

    def keep() -> None:
        nonlocal taken_at
        if time.monotonic() - taken_at >= _RENEW_SECONDS:
            _take(database, holder)
            taken_at = time.monotonic()

    try:
        yield keep
    finally:
        with suppress(UnavailableError), database.write() as session:  # the lease expires by itself
            LeaseRepository(session).give_back(_LEASE, holder)


def _take(database: Database, holder: str) -> None:
    with database.write() as session:
        require_current(session)
        leases = LeaseRepository(session)
        if leases.take(_LEASE, holder, LEASE_SECONDS):
            return
        current_holder = leases.holder(_LEASE)
    raise ConflictError("maintenance-at-work", holder=current_holder, minutes=LEASE_SECONDS / 60)
