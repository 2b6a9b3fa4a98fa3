"""Clean up after earlier workers of this machine whose processes are gone."""

from __future__ import annotations

from sqlalchemy.orm import Session

from onboard.operations.processes import host_name, is_alive, lives
from onboard.operations.webhooks.deliver import LEASE as WEBHOOKS
from onboard.registry.claims import ClaimRepository
from onboard.registry.clock import read_clock
from onboard.registry.leases import LeaseRepository
from onboard.registry.shards import ShardRepository
from onboard.registry.workers import WorkerRepository


def recover(session: Session) -> None:
    """End the leases of jobs whose process is gone (a killed worker, a reboot). For SQLite only: it has one machine.

    So are the webhooks that it was sending: they would wait for longer than an idle worker of the home stays.
    """
    for worker in WorkerRepository(session).list(include_stopped=True):
        if worker.host == host_name() and worker.job is not None:
            _end_leases(session, worker.name)
        if not lives(worker):
            LeaseRepository(session).give_back(WEBHOOKS, worker.name)


def take_over(session: Session, name: str) -> None:
    """A worker that was killed makes room at once for the next one of its name, and its job does not wait either.

    Whatever starts services again, systemd for example, gives the same name; and it gives up after a few refusals.
    """
    for worker in WorkerRepository(session).list():
        if worker.name == name and worker.host == host_name() and not lives(worker):
            WorkerRepository(session).stop(name)
            _end_leases(session, name)


def _end_leases(session: Session, name: str) -> None:
    claims = ClaimRepository(session)
    for job in claims.running(name):
        if job.worker_pid is not None and not is_alive(job.worker_pid, job.lease_expires_at or 0.0):
            claims.expire(name, job.worker_pid)
    shards = ShardRepository(session)
    for pid in set(shards.held(name)):
        if not is_alive(pid, read_clock(session)):
            shards.expire(name, pid)
