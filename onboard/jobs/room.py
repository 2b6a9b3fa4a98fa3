"""Use case: refuse work early that an owner's quota does not allow, before anything is read or stored for it."""

from __future__ import annotations

from collections.abc import Mapping

from onboard.registry.database import Database
from onboard.registry.jobs import JobRepository
from onboard.registry.quotas import QuotaRepository


def require_room(
    database: Database,
    owner: str | None,
    new_bytes: Mapping[str, int] | None = None,
    *,
    key: str | None = None,
    jobs: int = 1,
) -> None:
    """Refuse an owner that has no job or too few bytes left. The transaction that queues the job decides.

    Args:
        owner: name of the token; None has no quota.
        new_bytes: sizes of the artifacts to be stored, by digest.
        key: idempotency key; if a job was queued under it, nothing new is queued.

    Raises:
        QuotaError: the owner has no job left, or fewer bytes than these.
    """
    if owner is None:
        return
    with database.read() as session:
        quotas = QuotaRepository(session)
        if quotas.of([owner]) and not (key and JobRepository(session).under(key)):
            quotas.require_room(owner, new_bytes, jobs=jobs)
