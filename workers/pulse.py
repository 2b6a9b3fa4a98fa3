"""The last state of a worker's child, in memory that parent and child share: its heartbeat and any problem.

It goes neither through the database nor through the broker, which may be away, nor through a disk, which may be full.
"""

from __future__ import annotations

import json
import os
import tempfile
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

from onboard.domain.worker import Trouble

BEAT_SECONDS: Final = 1.0
_BYTES: Final = 8192
_MOST_LETTERS: Final = 1000  # of a trouble's message


@dataclass(frozen=True)
class Beat:
    """One record.

    Args:
        pid: of the child.
        count: how often its heart has beaten.
        loaded: whether it has loaded what every job needs.
    """

    pid: int
    count: int = 0
    loaded: bool = False
    trouble: Trouble | None = None


def shared_memory() -> int:
    """A file descriptor of an empty file that no folder has, for a parent and its children."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("onboard-pulse")
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


def read_beat(descriptor: int) -> Beat | None:
    """The last record; None where there is none, or where one is being written."""
    try:
        document = json.loads(os.pread(descriptor, _BYTES, 0))
        trouble = Trouble.read(document["trouble"])
        return Beat(int(document["pid"]), int(document["count"]), bool(document["loaded"]), trouble)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def write_beat(descriptor: int, beat: Beat) -> None:
    """Replace the last record."""
    trouble: dict[str, Any] | None = None
    if beat.trouble is not None:
        trouble = {**beat.trouble.to_json(), "message": beat.trouble.message[:_MOST_LETTERS]}
    document = {"pid": beat.pid, "count": beat.count, "loaded": beat.loaded, "trouble": trouble}
    with suppress(OSError):  # the parent notices that it hears nothing
        os.pwrite(descriptor, json.dumps(document).encode()[:_BYTES].ljust(_BYTES), 0)


@dataclass
class Pulse:
    """The child's side: beats in a thread for as long as the process can run one.

    Args:
        descriptor: the shared memory; None where nobody listens.
    """

    descriptor: int | None
    loaded: bool = False
    trouble: Trouble | None = None
    _count: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def start(self) -> None:
        """Beat from now on."""
        self.beat()
        threading.Thread(target=self._go_on, name="pulse", daemon=True).start()

    def say(self, trouble: Trouble | None, *, loaded: bool | None = None) -> None:
        """Set the current problem, or None."""
        self.trouble = trouble
        self.loaded = self.loaded if loaded is None else loaded
        self.beat()

    def beat(self) -> None:
        """Say once that the process lives."""
        with self._lock:
            self._count += 1
            if self.descriptor is not None:
                write_beat(self.descriptor, Beat(os.getpid(), self._count, self.loaded, self.trouble))

    def _go_on(self) -> None:
        never = threading.Event()
        while not never.wait(BEAT_SECONDS):
            self.beat()
