"""The slot: of one base only one job at a time tunes the hypernetwork.

It keeps jobs from working in vain; what keeps the line of hypernetworks whole is the compare-and-swap in `publish`.
"""

from __future__ import annotations

from onboard.domain.job import LEASE_SECONDS
from onboard.domain.task import BaseRecord
from onboard.errors import SlotTakenError
from onboard.registry.bases import BaseRepository
from onboard.registry.leases import LeaseRepository
from onboard.registry.services import Services


class HeadMovedError(Exception):
    """The base's head is not what the job began with: it has to begin again under the new one."""

    def __init__(self, began_with: int, head: int) -> None:
        super().__init__(f"the hypernetwork moved from version {began_with} to {head}: starting over with that")


def take_slot(services: Services, job_id: str, base: BaseRecord) -> None:
    """Take the slot, or keep it; the job's heartbeat extends it, the job's end gives it back.

    Args:
        services: whose registry it is.
        job_id: that is to tune.
        base: as it stood when the job began.

    Raises:
        SlotTakenError: another job has it.
        HeadMovedError: another job had it in the meantime, and moved the head.
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
