"""The faults besides kills: each begins, and what it returns ends it."""

from __future__ import annotations

import random
import signal
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Final

import psutil
from sqlalchemy import delete

from bench.chaos.fleet import Fleet
from bench.chaos.journal import Journal
from bench.chaos.place import Place, Servers
from bench.chaos.prey import Hunter
from onboard.domain.job import JobState
from onboard.errors import ConflictError, NotFoundError, UnavailableError
from onboard.jobs.doorbell import DEFAULT_QUEUE, ring_or_warn
from onboard.registry.jobs import JobRepository
from onboard.registry.tables import LeaseRow
from onboard.registry.workers import QueueRepository, WorkerRepository
from onboard.services import Services
from workers.doorbell import CeleryDoorbell
from workers.reconciler import reconcile

Mend = Callable[[], None]
_OPEN: Final = (JobState.QUEUED, JobState.RUNNING)
_LOCKED_SECONDS: Final = 4.0


class Faults:
    """What can be done to a place. `begin` returns what mends it, or None when there is nothing to mend.

    Args:
        services: the registry without the proxy, as an operator reaches it.
    """

    def __init__(
        self, place: Place, services: Services, fleet: Fleet, hunter: Hunter, journal: Journal, rng: random.Random
    ) -> None:
        self._place = place
        self._services = services
        self._fleet = fleet
        self._hunter = hunter
        self._journal = journal
        self._rng = rng
        self._bell = CeleryDoorbell(place.direct)
        self._known: dict[str, Callable[[], Mend | None]] = {
            "zombie": self._zombie,
            "disk full": self._disk_full,
            "two reconcilers": self._two_reconcilers,
            "cancel": self._cancel,
            "queue paused": self._pause,
            "worker drained": self._drain,
            "worker told to stop": self._tell_to_stop,
            "bells lost": self._bells_lost,
            "database locked": self._locked,
        }
        if place.servers:
            self._known |= _of_servers(place.servers)

    def begin(self, name: str) -> Mend | None:
        """Begin the fault of that name."""
        self._journal.write("fault", fault=name)
        with suppress(UnavailableError):  # another fault is in the way of this one
            return self._known[name]()
        return None

    def _zombie(self) -> Mend | None:
        """A writer that sleeps beyond its lease and then goes on."""
        return self._hunter.freeze(self._rng.choice(("child", "both")))

    def _disk_full(self) -> Mend:
        if self._place.disk is not None:
            self._place.disk.fill()
            return self._place.disk.free
        return self._no_file_may_grow()

    def _no_file_may_grow(self) -> Mend:
        """Where no disk can be mounted: the kernel refuses the workers every further byte of a file."""
        limited: list[psutil.Process] = []
        for worker in self._fleet.alive():
            with suppress(psutil.Error):
                parent = psutil.Process(worker.process.pid)
                limited += [parent, *parent.children()]
        _limit(limited, 0)
        return partial(_limit, limited, psutil.RLIM_INFINITY)

    def _two_reconcilers(self) -> None:
        """Whoever holds the lease loses it; then two take it at once, because it lasts for no time."""
        database = self._services.database
        with database.write() as session:
            session.execute(delete(LeaseRow))
        barrier = threading.Barrier(2)

        def one(holder: str) -> None:
            barrier.wait()
            with suppress(UnavailableError):
                done = reconcile(database, CeleryDoorbell(self._place.direct), holder, 0.0)
                self._journal.write("reconciled", holder=holder, done=done)

        threads = [threading.Thread(target=one, args=(f"reconciler {number}",)) for number in (1, 2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _cancel(self) -> None:
        with self._services.database.write() as session:
            jobs = JobRepository(session).list(states=_OPEN)
            if not jobs:
                return
            job = self._rng.choice(jobs)
            with suppress(ConflictError):  # it has ended meanwhile
                JobRepository(session).cancel(job.id)
                self._journal.write("cancelled", job=job.id, state=job.state)

    def _pause(self) -> Mend:
        self._set_paused(True)

        def resume() -> None:
            self._set_paused(False)
            ring_or_warn(self._bell, DEFAULT_QUEUE)

        return resume

    def _set_paused(self, paused: bool) -> None:
        with self._services.database.write() as session:
            QueueRepository(session).set_paused(DEFAULT_QUEUE, paused)

    def _drain(self) -> None:
        workers = self._fleet.alive()
        if workers:
            with suppress(NotFoundError), self._services.database.write() as session:
                WorkerRepository(session).drain(self._rng.choice(workers).name)

    def _tell_to_stop(self) -> None:
        workers = self._fleet.alive()
        if workers:
            self._rng.choice(workers).process.send_signal(signal.SIGTERM)

    def _bells_lost(self) -> None:
        for message in (self._place.settings.resolved_home / "broker").glob("*.msg"):
            message.unlink(missing_ok=True)

    def _locked(self) -> Mend:
        """A writer that takes its time; not for ever, for whoever ends this may be waiting for the lock."""
        over = threading.Event()

        def hold() -> None:
            with suppress(UnavailableError), self._services.database.write():
                over.wait(_LOCKED_SECONDS)

        thread = threading.Thread(target=hold)
        thread.start()

        def release() -> None:
            over.set()
            thread.join()

        return release


def _of_servers(servers: Servers) -> dict[str, Callable[[], Mend | None]]:
    postgres, redis, proxy = servers.postgres, servers.redis, servers.proxy
    return {
        "redis lost": lambda: _after(redis.kill, redis.start),
        "redis wiped": lambda: _after(redis.wipe, None),
        "postgres restarted fast": lambda: _after(partial(postgres.stop, signal.SIGINT), postgres.start),
        "postgres restarted at once": lambda: _after(partial(postgres.stop, signal.SIGQUIT), postgres.start),
        "connections cut": lambda: _after(proxy.cut, None),
        "connections refused": lambda: _after(proxy.refuse, proxy.resume),
        "connections stalled": lambda: _after(proxy.stall, proxy.resume),
        "connections half closed": lambda: _after(proxy.half_close, proxy.resume),
    }


def _after(begin: Callable[[], None], mend: Mend | None) -> Mend | None:
    begin()
    return mend


def _limit(processes: list[psutil.Process], most: int) -> None:
    for process in processes:
        with suppress(psutil.Error):
            process.rlimit(psutil.RLIMIT_FSIZE, (most, psutil.RLIM_INFINITY))
