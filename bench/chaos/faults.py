"""The faults other than kills: each begins, and what it returns ends it."""

from __future__ import annotations

import random
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from itertools import cycle
from queue import SimpleQueue
from typing import Final

import psutil
from sqlalchemy import delete

from bench.chaos.backups import Backups
from bench.chaos.fleet import Fleet
from bench.chaos.journal import Journal
from bench.chaos.place import Deployment
from bench.chaos.poison import POISONS
from bench.chaos.prey import Hunter
from bench.chaos.server_faults import Mend, server_faults
from onboard.broker.doorbell import CeleryDoorbell
from onboard.domain.job import JobState
from onboard.errors import ConflictError, NotFoundError, UnavailableError
from onboard.jobs.doorbell import DEFAULT_QUEUE, ring_or_warn
from onboard.registry.jobs import JobRepository
from onboard.registry.leases import LeaseRepository
from onboard.registry.services import Services
from onboard.registry.tables import LeaseRow
from onboard.registry.workers import QueueRepository, WorkerRepository
from workers.reconciler import LEASE, reconcile

_OPEN: Final = (JobState.QUEUED, JobState.RUNNING)
_LOCKED_SECONDS: Final = 4.0
_CYCLE_SECONDS: Final = (0.5, 4.0)
_AIM_SECONDS: Final = 10.0
_LOOK_SECONDS: Final = 0.1
_JUMPS: Final = (-86400.0, -3600.0, -30.0, 0.0, 30.0, 3600.0, 86400.0)


class Faults:
    """The faults of a place. `begin` returns what mends it, or None when there is nothing to mend.

    Args:
        services: the registry without the proxy, as an operator reaches it.
        backups: what makes them.
        cycles: how often running workers are killed when all of them are.

    Attributes:
        poison: what somebody is to submit.
    """

    def __init__(
        self,
        place: Deployment,
        services: Services,
        fleet: Fleet,
        hunter: Hunter,
        backups: Backups,
        journal: Journal,
        rng: random.Random,
        cycles: int,
    ) -> None:
        self._place = place
        self._services = services
        self._fleet = fleet
        self._hunter = hunter
        self._journal = journal
        self._rng = rng
        self._cycles = cycles
        self._bell = CeleryDoorbell(place.direct)
        self._poisons = cycle(rng.sample(POISONS, len(POISONS)))
        self.poison: SimpleQueue[str] = SimpleQueue()
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
            "sleeper": self._sleeper,
            "all workers killed": self._kill_all,
            "reconciler killed": self._kill_reconciler,
            "clock jumps": self._clock_jumps,
            "poison job": self._poison,
            "backup": backups.begin,
        }
        if place.servers:
            self._known |= server_faults(place.servers, journal, rng)

    def begin(self, name: str) -> Mend | None:
        """Begin the fault of that name."""
        self._journal.write("fault", fault=name)
        with suppress(UnavailableError):  # another fault is in the way of this one
            return self._known[name]()
        return None

    def _zombie(self) -> Mend | None:
        """A writer that sleeps beyond its lease and then goes on."""
        return self._hunter.freeze(self._rng.choice(("child", "both")))

    def _sleeper(self) -> Mend | None:
        """A whole worker that sleeps until another has done its job, and then goes on."""
        return self._hunter.freeze("both")

    def _kill_all(self) -> None:
        """Every worker at once, again and again while they are started again."""
        for _ in range(self._cycles):
            self._hunter.kill_all()
            self._hunter.wait(self._rng.uniform(*_CYCLE_SECONDS))

    def _kill_reconciler(self) -> None:
        """Whoever looks after the queue for all; another one has to take over when its lease has run out."""
        deadline = time.monotonic() + _AIM_SECONDS
        while time.monotonic() < deadline:
            with suppress(UnavailableError), self._services.database.read() as session:
                holder = LeaseRepository(session).holder(LEASE)
                if holder and self._hunter.kill_worker(holder):
                    self._journal.write("reconciler killed", holder=holder)
                    return
            self._hunter.wait(_LOOK_SECONDS)

    def _clock_jumps(self) -> None:
        slot, seconds = self._rng.randrange(self._fleet.size), self._rng.choice(_JUMPS)
        self._fleet.jump(slot, seconds)
        self._journal.write("clock", slot=slot, wrong_by_seconds=seconds)

    def _poison(self) -> None:
        self.poison.put(next(self._poisons))

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


def _limit(processes: list[psutil.Process], most: int) -> None:
    for process in processes:
        with suppress(psutil.Error):
            process.rlimit(psutil.RLIMIT_FSIZE, (most, psutil.RLIM_INFINITY))
