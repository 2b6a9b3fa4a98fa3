"""Watches which job is in which stage, and kills or freezes its worker there."""

from __future__ import annotations

import math
import os
import random
import signal
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from typing import Final

from sqlalchemy import select

from bench.chaos.fleet import Fleet, Worker
from bench.chaos.journal import Journal
from bench.chaos.plan import Victim
from onboard.domain.job import JobState, Stage
from onboard.errors import UnavailableError
from onboard.registry.database import Database
from onboard.registry.tables import JobRow

_AIM_SECONDS: Final = 10.0
_LOOK_SECONDS: Final = 0.004
_LOOKS_A_TURN: Final = 20
_PAUSE_SECONDS: Final = 0.05
_IDLE: Final = "idle"  # the stage of a worker that has no job
_CLAIMED: Final = "claimed"  # the stage of a job before its first one
_WITHIN_SECONDS: Final = {Stage.PUBLISH: 0.01}  # a stage is let go on for so long at most
_WITHIN_OTHERS: Final = 0.08
_SPARED_SECONDS: Final = 5.0  # whoever was frozen may act so long before it is killed


@dataclass(frozen=True)
class Prey:
    """A running job and the process that runs it."""

    job: str
    attempt: int
    stage: str
    worker: str | None
    pid: int | None


class Hunter:
    """Kills and freezes workers at chosen moments of their jobs.

    Args:
        meanwhile: called every now and then while it waits for such a moment.
        aim_seconds: how long it waits for one.
    """

    def __init__(
        self,
        fleet: Fleet,
        database: Database,
        journal: Journal,
        rng: random.Random,
        meanwhile: Callable[[], None] = lambda: None,
        aim_seconds: float = _AIM_SECONDS,
    ) -> None:
        self._fleet = fleet
        self._database = database
        self._journal = journal
        self._rng = rng
        self._meanwhile = meanwhile
        self._aim_seconds = aim_seconds
        self._spared: dict[int, float] = {}  # until when, of processes that are frozen or were lately

    def kill(self, victim: Victim, aim: Stage | None) -> bool:
        """kill -9 of a worker's child, its parent, or both; of one whose job is in stage `aim` if one comes along.

        Returns:
            Whether anything was killed: there is nothing while every worker is starting, or was frozen lately.
        """
        if aim is not None and self._caught(victim, aim, self._end):
            return True
        there = list(self._killable(victim))
        if there:
            self._end(victim, *self._rng.choice(there))
        return bool(there)

    def kill_all(self) -> None:
        """kill -9 of every worker, parent and child, but those that were frozen lately."""
        for prey, worker, pids in list(self._killable("both")):
            self._end("both", prey, worker, pids)

    def kill_worker(self, name: str) -> bool:
        """The same for the worker of that name. Returns whether it could be."""
        for prey, worker, pids in self._killable("both"):
            if worker.name == name:
                self._end("both", prey, worker, pids)
                return True
        return False

    def wait(self, seconds: float) -> None:
        """Let what goes on all the time go on for so long."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            self._meanwhile()
            time.sleep(_PAUSE_SECONDS)

    def freeze(self, victim: Victim) -> Callable[[], None] | None:
        """SIGSTOP in the midst of a job; what is returned lets it go on. None when no job ran."""
        stopped: list[int] = []

        def keep(victim: Victim, prey: Prey | None, worker: Worker, pids: list[int]) -> None:
            stopped.extend(pids)
            self._spared.update(dict.fromkeys(pids, math.inf))
            self._tell("frozen", victim, prey, worker)

        if not self._caught(victim, Stage.TRAIN, keep):
            return None

        def thaw() -> None:
            _signal(stopped, signal.SIGCONT)
            self._spared.update(dict.fromkeys(stopped, time.monotonic() + _SPARED_SECONDS))
            self._journal.write("thawed", pids=stopped)

        return thaw

    def _caught(
        self, victim: Victim, aim: Stage, then: Callable[[Victim, Prey | None, Worker, list[int]], None]
    ) -> bool:
        """Stop the processes of a job that is in stage `aim`, look again, and only then do it."""
        deadline = time.monotonic() + self._aim_seconds
        for look in count(1):
            if time.monotonic() > deadline:
                break
            if look % _LOOKS_A_TURN == 0:
                self._meanwhile()
            for prey in self._in(aim):
                worker = self._fleet.named(prey.worker)
                pids = _pids(victim, worker, prey) if worker else []
                if worker is None or not pids or self._are_spared(pids):
                    continue
                time.sleep(self._rng.uniform(0.0, _WITHIN_SECONDS.get(aim, _WITHIN_OTHERS)))
                _signal(pids, signal.SIGSTOP)
                if prey in self._in(aim):
                    then(victim, prey, worker, pids)
                    return True
                _signal(pids, signal.SIGCONT)
            time.sleep(_LOOK_SECONDS)
        return False

    def _killable(self, victim: Victim) -> Iterator[tuple[Prey | None, Worker, list[int]]]:
        running = {prey.worker: prey for prey in self._running()}
        for worker in self._fleet.alive():
            prey = running.get(worker.name)
            pids = _pids(victim, worker, prey)
            if pids and not self._are_spared(_pids("both", worker, prey)):
                yield prey, worker, pids

    def _are_spared(self, pids: Iterable[int]) -> bool:
        return any(self._spared.get(pid, 0.0) > time.monotonic() for pid in pids)

    def _end(self, victim: Victim, prey: Prey | None, worker: Worker, pids: list[int]) -> None:
        _signal(pids, signal.SIGKILL)
        self._tell("kill", victim, prey, worker)
        if victim != "child":
            worker.process.wait()

    def _tell(self, what: str, victim: Victim, prey: Prey | None, worker: Worker) -> None:
        self._journal.write(
            what,
            victim=victim,
            worker=worker.name,
            job=prey.job if prey else None,
            attempt=prey.attempt if prey else None,
            stage=prey.stage if prey else _IDLE,
        )

    def _in(self, stage: Stage) -> list[Prey]:
        return [prey for prey in self._running() if prey.stage == stage]

    def _running(self) -> Iterator[Prey]:
        statement = select(JobRow.id, JobRow.attempt, JobRow.stage, JobRow.worker, JobRow.worker_pid)
        with suppress(UnavailableError), self._database.read() as session:
            rows = session.execute(statement.where(JobRow.state == JobState.RUNNING)).all()
            yield from [Prey(job, attempt, stage or _CLAIMED, worker, pid) for job, attempt, stage, worker, pid in rows]


def _pids(victim: Victim, worker: Worker, prey: Prey | None) -> list[int]:
    """The processes to kill, the parent first: it must not notice the fate of its child."""
    child = prey.pid if prey else worker.child()
    parents = [] if victim == "child" else [worker.process.pid]
    return [*parents, *([child] if child and victim != "parent" else [])]


def _signal(pids: Iterable[int], number: signal.Signals) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)
