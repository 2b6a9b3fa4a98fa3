"""The reconciler: sends messages for waiting jobs again, and ends jobs that nobody may claim any more.

It runs inside every worker, one at a time by a leased row, so that there is nothing else to start or to watch.
"""

from __future__ import annotations

import sys
from typing import Final

from sqlalchemy.orm import Session

from onboard.jobs.doorbell import Doorbell
from onboard.operations.webhooks import give_up
from onboard.registry.claims import ClaimRepository
from onboard.registry.database import Database
from onboard.registry.leases import LeaseRepository
from onboard.registry.shards import ShardRepository
from onboard.registry.transitions import TransitionRepository
from onboard.registry.workers import WorkerRepository

LEASE: Final = "reconciler"
_FORGET_SECONDS: Final = 7 * 24 * 3600.0  # how long workers that left can be seen


def reconcile(database: Database, doorbell: Doorbell, holder: str, lease_seconds: float) -> bool:
    """One round, if no other worker holds the lease.

    Returns:
        Whether the round was made here.

    Raises:
        UnavailableError: database or broker cannot be reached; the next round tries again.
    """
    with database.glance() as session:  # all workers ask, and one writes: a write forces the log to disk
        if LeaseRepository(session).holder(LEASE) not in (None, holder):
            return False
    with database.write() as session:
        if not LeaseRepository(session).take(LEASE, holder, lease_seconds):
            return False
        ClaimRepository(session).end_overdue()  # also of a worker whose parent, which looks at them, is gone
        ClaimRepository(session).end_abandoned()
        WorkerRepository(session).forget(_FORGET_SECONDS)
        TransitionRepository(session).fold()
        give_up(session)  # also where no worker has an endpoint any more
    with database.read() as session:
        bells = _bells(session)
    for queue, count in bells.items():
        for _ in range(count):
            doorbell.ring(queue)
    return True


def _bells(session: Session) -> dict[str, int]:
    """A bell per runnable job, but no more than workers are there to hear it: bells never pile up in the broker.

    Where a running job has shards that others may answer, one for every worker that has nothing else to do.
    """
    work = {**ClaimRepository(session).runnable(), **dict.fromkeys(ShardRepository(session).queues(), sys.maxsize)}
    workers = WorkerRepository(session).list() if work else []
    idle = [worker for worker in workers if worker.takes_jobs and worker.job is None]
    return {queue: min(count, sum(queue in worker.queues for worker in idle)) for queue, count in work.items()}
