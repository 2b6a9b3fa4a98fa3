"""Starting a pool's child so that the parent keeps what it said, if it ends before it can log.

Billiard starts a child by `spawnv_passfds`, which leaves it the parent's standard error. Here that goes to a file
without a name until the child runs our code, which then takes the parent's back (`speak_up`).
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from billiard import popen_spawn_posix

_MOST_BYTES: Final = 64 * 1024
_MOST_LINES: Final = 3
_STDERR: Final = 2


class LastWords:
    """The output of the children of this process before they ran our code, by process.

    Args:
        passed: file descriptors that every child inherits under the same numbers.
    """

    def __init__(self, passed: Sequence[int] = ()) -> None:
        self._passed = tuple(passed)
        self._files: dict[int, int] = {}  # descriptors: a process that ends with some open leaves no warning

    def listen(self) -> None:
        """From now on; for as long as this process lives."""
        popen_spawn_posix.spawnv_passfds = self._spawn

    def pids(self) -> set[int]:
        """Of the children that were started and not asked about since."""
        return set(self._files)

    def of(self, pid: int) -> str:
        """The last lines of what the child said, in one line; it is forgotten afterwards."""
        descriptor = self._files.pop(pid, None)
        if descriptor is None:
            return ""
        with os.fdopen(descriptor, "r+b") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - _MOST_BYTES))
            lines = file.read().decode(errors="replace").splitlines()
        return " ".join([line.strip() for line in lines if line.strip()][-_MOST_LINES:])

    def _spawn(self, path: bytes | str, args: Sequence[str | bytes], passfds: Sequence[int]) -> int:
        inherited = sorted({*passfds, *self._passed})
        with tempfile.TemporaryFile() as file:
            process = subprocess.Popen(list(args), executable=path, pass_fds=inherited, stderr=file)
            self._files[process.pid] = os.dup(file.fileno())
        process.returncode = 0  # billiard waits for it: no warning that nobody did
        return process.pid


def usual_stderr() -> int:
    """A second descriptor of this process's standard error, for its children; of nothing where it is closed."""
    try:
        return os.dup(_STDERR)
    except OSError:
        return os.open(os.devnull, os.O_WRONLY)


def speak_up(usual: int) -> None:
    """In the child: what it says goes to the parent's standard error from now on."""
    with suppress(OSError):
        os.dup2(usual, _STDERR)
