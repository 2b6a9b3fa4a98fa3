"""The work in hand of a worker's processes: jobs, and shards of jobs that predict files."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from onboard.domain.job import Job
from onboard.errors import FencedError
from onboard.jobs.doorbell import Doorbell, ring_or_warn
from onboard.registry.claims import ClaimRepository
from onboard.registry.database import Database
from onboard.registry.shards import ShardRepository
from workers.logs import fields_of

_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class WorkInHand:
    """Of one worker.

    Args:
        doorbell: rung for what goes back to a queue.
    """

    database: Database
    worker: str
    doorbell: Doorbell

    def jobs(self) -> list[Job]:
        """Those that its processes run."""
        with self.database.glance() as session:
            return list(ClaimRepository(session).running(self.worker))

    def helpers(self) -> list[int]:
        """The processes that predict shards, of their own jobs or of others."""
        with self.database.glance() as session:
            return ShardRepository(session).held(self.worker)

    def expire(self, pid: int) -> None:
        """A process is gone: another attempt follows for what it had in hand."""
        with self.database.write() as session:
            jobs = ClaimRepository(session).expire(self.worker, pid)
            ShardRepository(session).expire(self.worker, pid)
        for job in jobs:
            _logger.warning("Its process %d died; another attempt will follow", pid, extra=fields_of(job))
            ring_or_warn(self.doorbell, job.queue)

    def hand_back(self, jobs: Sequence[Job]) -> None:
        """The worker leaves before these jobs are done: they go back to their queues, and all shards with them."""
        for job in jobs:
            try:
                with self.database.write() as session:
                    ClaimRepository(session).release(job.id, job.attempt)
            except FencedError:
                continue  # it ended at the last moment
            _logger.warning("Returned to the queue", extra=fields_of(job))
            ring_or_warn(self.doorbell, job.queue)
        with self.database.write() as session:
            ShardRepository(session).give_back_all(self.worker)
