"""The slot: only one job per base tunes the hypernetwork at a time.

It avoids wasted work; the compare-and-swap in `publish` guarantees a linear history of hypernetworks.
"""

from __future__ import annotations

from onboard.domain.job import LEASE_SECONDS
from onboard.domain.task import BaseRecord
from onboard.errors import SlotTakenError
from onboard.registry.bases import BaseRepository
from onboard.registry.leases import LeaseRepository
from onboard.registry.services import Services


class HeadMovedError(Exception):
    """The base's head moved since the job began; the job has to restart under the new one."""

    def __init__(self, began_with: int, head: int) -> None:
        super().__init__(f"the hypernetwork moved from version {began_with} to {head}: starting over with that")


def take_slot(services: Services, job_id: str, base: BaseRecord) -> None:
    """Take or keep the slot; the job's heartbeat extends it, and the end of the job releases it.

    Args:
        services: services with the registry.
        job_id: the job that will tune.
        base: record of the base when the job began.

    Raises:
        SlotTakenError: another job has it.
        HeadMovedError: another job had it in the meantime and moved the head.
    """
    name = f"tuning {base.digest}"
    with services.database.write() as session:
        leases = LeaseRepository(session)
        if not leases.take(name, job_id, LEASE_SECONDS):
            holder = leases.holder(name)
            raise SlotTakenError("tuning-slot-taken", holder=holder, base=base.name)
        head = BaseRepository(session).get(base.digest).head
    if head != base.head:
        raise HeadMovedError(base.head, head)
