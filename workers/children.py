"""The state of a worker's child process as seen by its parent: starting, alive, able to work.

Celery replaces a child that ends, at once and for ever. A child that cannot come up, because the installation is gone
for example, would be replaced several times a second while the parent's own heartbeat says that all is well.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from onboard.domain.counting import counted
from onboard.domain.worker import Trouble
from workers.last_words import LastWords
from workers.plan import WorkerPlan
from workers.pulse import Beat, read_beat

MOST_EARLY_ENDS: Final = 3  # in a row, of children that end before they are ready
MOST_FAULTS: Final = (
    3  # in a row, of a worker that leaves when there is nothing to do: the next submission starts another
)
SILENT_SECONDS: Final = 60.0  # after so long without a beat the child is not healthy
_LOADING_SECONDS: Final = 300.0  # until the first beat: Python and its libraries are imported, maybe from a slow disk
_PAUSES: Final = (5.0, 20.0, 60.0, 300.0)  # before another child tries what the last one could not load
_FORGET_SECONDS: Final = 600.0  # without trouble, and the next one counts as the first


@dataclass
class Children:
    """Of one worker.

    Args:
        plan: names the memory in which the child beats; without it nothing is known, and all is well.
        pids: the pool's processes at the moment.
        last_words: what those that were started said before they could log; None where that is not heard.
        clock: seconds that only grow.
    """

    plan: WorkerPlan
    pids: Callable[[], set[int]]
    last_words: LastWords | None = None
    clock: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        self._beat: Beat | None = None
        self._beaten_at = self.clock()
        self._beats = False  # whether the present child has beaten at all
        self._stopped_by: Trouble | None = None  # what kept a child from its work, until one has loaded everything
        self._loaded: set[int] = set()
        self._spared: set[int] = set()
        self._early, self._said = 0, ""
        self._started: set[int] = set()  # not known to have ended
        self._missed: set[int] = set()  # at the last look
        self._faults, self._fault_at = 0, -_FORGET_SECONDS
        self._faulty_since: float | None = None

    def look(self) -> None:
        """Notice who has ended, and read what the child last said."""
        present, started = self.pids(), set() if self.last_words is None else self.last_words.pids()
        missed = (self._started | started) - present
        for pid in sorted(missed & self._missed):  # one that has just been started is in the pool a moment later
            self._ended(pid)
        self._missed, self._started = missed, present | (missed - self._missed)
        beat = None if self.plan.pulse is None else read_beat(self.plan.pulse)
        if beat is None or beat == self._beat or beat.pid in self._spared:
            return
        self._beat, self._beaten_at, self._beats = beat, self.clock(), True
        if beat.trouble is not None and beat.trouble.stops:
            self._stopped_by = beat.trouble
        elif beat.loaded:
            self._stopped_by = None
        if beat.loaded:
            self._loaded.add(beat.pid)
            self._early = 0
        if beat.trouble is None or not beat.trouble.stops:
            self._faulty_since = None
        elif self._faulty_since is None:
            self._faulty_since = self.clock()
            self._faults = 1 if self.clock() - self._fault_at > _FORGET_SECONDS else self._faults + 1
            self._fault_at = self.clock()

    def spare(self, pids: Iterable[int]) -> None:
        """These are about to be killed by their parent: their end says nothing."""
        self._spared |= set(pids)

    def kill(self) -> None:
        """End the pool's processes; Celery replaces them while it runs."""
        present = self.pids()
        self.spare(present)
        self._faulty_since = None  # a successor gets its time, also before this end is noticed
        for pid in present:
            with suppress(ProcessLookupError):  # it was quicker
                os.kill(pid, signal.SIGKILL)

    def _ended(self, pid: int) -> None:
        """Another child takes its place."""
        said = "" if self.last_words is None else self.last_words.of(pid)
        if self.plan.pulse is not None and pid not in self._loaded | self._spared:
            self._early, self._said = self._early + 1, said or self._said
        self._loaded.discard(pid)
        self._spared.discard(pid)
        self._beaten_at, self._beats, self._faulty_since = self.clock(), False, None

    @property
    def trouble(self) -> Trouble | None:
        """The reason why the child cannot work."""
        if self._stopped_by is not None:  # a successor that is still loading has no better information
            return self._stopped_by
        if self._beats and self._beat is not None and self._beat.trouble is not None:
            return self._beat.trouble
        silence = self.clock() - self._beaten_at
        if self.plan.pulse is None or silence < (SILENT_SECONDS if self._beats else _LOADING_SECONDS):
            return None
        return Trouble(
            f"The worker's process has not responded for {silence:.0f} s.",
            "If this continues, stop the worker and start it again.",
            stops=True,
        )

    @property
    def healthy(self) -> bool:
        """Whether the child does, or is about to do, what it is there for."""
        return self.trouble is None or not self.trouble.stops

    def facts(self) -> dict[str, Any]:
        """Its public state, in the worker's row."""
        return {"trouble": None if self.trouble is None else self.trouble.to_json()}

    def has_to_try_again(self) -> bool:
        """Whether a child that could not load what it needs has to make room for another one, which reads it afresh."""
        if self._faulty_since is None:
            return False
        pause = _PAUSES[min(self._faults, len(_PAUSES)) - 1]
        return self.clock() - self._faulty_since >= pause

    def collapse(self) -> Trouble | None:
        """Why Celery gave up by itself, as it does with Redis where the first child ends at once; None if unknown."""
        for pid in sorted(set() if self.last_words is None else self.last_words.pids()):
            self._ended(pid)
        return self._never_ready() if self._early else None

    def _never_ready(self) -> Trouble:
        said = f"It said: {self._said.rstrip('.')}." if self._said else "It printed nothing."
        return Trouble(
            f"The worker's process exited before it was ready ({counted(self._early, 'time')} in a row). {said}",
            "Repair the installation or the machine (pip install --force-reinstall onboard; dmesg), then start the "
            "worker again.",
            stops=True,
        )

    def hopeless(self) -> Trouble | None:
        """Why the worker has to leave; None while it may stay."""
        if self._early >= MOST_EARLY_ENDS:
            return self._never_ready()
        if self.plan.idle_exit_seconds is not None and self._faults >= MOST_FAULTS and self._faulty_since is not None:
            return self.trouble
        return None
