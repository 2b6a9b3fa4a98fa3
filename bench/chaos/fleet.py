"""Workers as processes of an operator: started, started again when they have ended, and stopped in order."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Final

import psutil

from bench.chaos.journal import Journal
from bench.harness.command import CHECKOUT
from bench.harness.programs import ended_in_order, start_worker
from onboard.settings import Settings

_WRONG_CLOCK: Final = Path(__file__).parent / "wrong_clock"
_STOP_SECONDS: Final = 60.0
_RESTART_SECONDS: Final = 0.5  # before a worker that ended is started again, as a supervisor does

Timings = Mapping[str, float]


@dataclass
class Worker:
    """One worker's parent process, with its own process group."""

    name: str
    process: subprocess.Popen[bytes]
    started_at: float = field(default_factory=time.monotonic)

    @property
    def alive(self) -> bool:
        """Whether the parent runs."""
        return self.process.poll() is None

    def child(self) -> int | None:
        """Process id of its pool's child, the largest of its children; None when there is none yet."""
        with suppress(psutil.Error):
            children = psutil.Process(self.process.pid).children()
            return max(children, key=lambda child: child.memory_info().rss).pid if children else None
        return None


class Fleet:
    """As many workers as there are clocks.

    Args:
        settings: of every worker.
        folder: where their logs go.
        clocks: how many seconds the clock of each worker is wrong at the start.
        timings: options of `python -m workers` such as lease_seconds.
        pipeline: module that runs the jobs.
    """

    def __init__(
        self,
        settings: Settings,
        folder: Path,
        journal: Journal,
        clocks: Sequence[float] = (0.0,),
        timings: Timings | None = None,
        pipeline: str = "bench.chaos.pipeline",
    ) -> None:
        self._settings = settings
        self._folder = folder
        self._journal = journal
        self._clocks = clocks
        self._timings = timings or {}
        self._pipeline = pipeline
        self._numbers = count(1)
        self._present: dict[int, Worker] = {}
        self._groups: list[int] = []

    def start(self) -> None:
        """Start every worker."""
        for slot, seconds in enumerate(self._clocks):
            self.jump(slot, seconds)
            self._present[slot] = self._start(slot)

    def tend(self) -> None:
        """Start again what has ended."""
        for slot, worker in self._present.items():
            code = worker.process.poll()
            if code is not None and time.monotonic() - worker.started_at > _RESTART_SECONDS:
                self._journal.write("ended", worker=worker.name, code=code)
                self._present[slot] = self._start(slot)

    def alive(self) -> list[Worker]:
        """The workers whose parents run."""
        return [worker for worker in self._present.values() if worker.alive]

    def named(self, name: str | None) -> Worker | None:
        """The worker of that name, if it runs."""
        return next((worker for worker in self.alive() if worker.name == name), None)

    def jump(self, slot: int, seconds: float) -> None:
        """Set the clock of a worker, and of those that come after it in its place, wrong by so many seconds."""
        aside = self._clock(slot).with_suffix(".new")
        aside.write_text(str(seconds), encoding="utf-8")
        aside.replace(self._clock(slot))

    @property
    def size(self) -> int:
        """How many workers there are, or will be again."""
        return len(self._clocks)

    def stop(self) -> list[int]:
        """Stop every worker in order, then kill all remaining ones.

        Returns:
            The processes that had to be killed.
        """
        workers = self.alive()
        for worker in workers:
            worker.process.send_signal(signal.SIGTERM)
        left = [worker.name for worker in workers if not _ends(worker)]
        if left:
            self._journal.write("did not stop", workers=left)
        over = list(_members(self._groups))
        for pid in over:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for worker in workers:
            worker.process.wait()
        return over

    def _start(self, slot: int) -> Worker:
        name = f"w{slot + 1}-{next(self._numbers)}"
        options = ["--device", "cpu", "--pipeline", self._pipeline]
        for key, value in self._timings.items():
            options += [f"--{key.replace('_', '-')}", str(value)]
        log = self._folder / f"worker-{slot + 1}.log"
        process = start_worker(self._settings, name, *options, log=log, environment=_environment(self._clock(slot)))
        self._groups.append(process.pid)
        self._journal.write(
            "started", worker=name, pid=process.pid, clock=self._clock(slot).read_text(encoding="utf-8")
        )
        return Worker(name, process)

    def _clock(self, slot: int) -> Path:
        return self._folder / f"clock-{slot + 1}"


@contextmanager
def running(fleet: Fleet) -> Iterator[Fleet]:
    """The fleet started; nothing of it is left afterwards, also when SIGTERM ends the block."""
    with ended_in_order():
        try:
            fleet.start()
            yield fleet
        finally:
            fleet.stop()


def _environment(clock: Path) -> dict[str, str]:
    path = os.pathsep.join([str(CHECKOUT), str(_WRONG_CLOCK)])
    return {"PYTHONPATH": path, "OMP_NUM_THREADS": "1", "WRONG_CLOCK_FILE": str(clock)}


def _ends(worker: Worker) -> bool:
    try:
        worker.process.wait(_STOP_SECONDS)
    except subprocess.TimeoutExpired:
        return False
    return True


def _members(groups: Sequence[int]) -> Iterator[int]:
    """The processes that are still alive in these process groups."""
    for process in psutil.process_iter():
        with suppress(psutil.Error, ProcessLookupError):
            if os.getpgid(process.pid) in groups and process.status() != psutil.STATUS_ZOMBIE:
                yield process.pid
