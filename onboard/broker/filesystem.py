"""Kombu's filesystem transport, made safe for several processes.

The original writes a message in place, so a reader may see an empty file and crash. It also stores exchanges in files
with the same race, and moves messages through the machine's shared temporary folder. Here a message is written to a
temporary file and renamed, taken by one rename, and put directly in the queue of its routing key. Anything else that is
found in the folder is dropped.
"""

from __future__ import annotations

import contextlib
import os
import stat
import time
import uuid
from pathlib import Path
from queue import Empty
from typing import Any

from kombu.transport import filesystem
from kombu.utils.json import dumps

from onboard.broker.bells import MOST_BYTES, NotABellError, edge
from onboard.domain.private import private_file


class Channel(filesystem.Channel):  # type: ignore[misc]  # kombu has no types
    """Stores messages as files `<milliseconds>_<random>.<queue>.msg` in `data_folder_in`."""

    @property
    def _folder(self) -> Path:
        return Path(self.data_folder_in)

    def _queue_bind(self, exchange: str, routing_key: str, pattern: str, queue: str) -> None:
        """Do nothing: messages are published to the anonymous exchange, and their routing key is the queue."""

    def _put(self, queue: str, payload: Any, **_options: Any) -> None:
        name = f"{int(time.time() * 1000):015d}_{uuid.uuid4().hex}.{queue}.msg"
        aside = self._folder / f".{name}"
        self._folder.mkdir(exist_ok=True)  # the folder may have been deleted while the worker runs
        private_file(aside).write_bytes(dumps(payload).encode())
        aside.rename(self._folder / name)

    def _get(self, queue: str) -> Any:
        for path in self._waiting(queue):
            mine = path.with_name(f".taken-{uuid.uuid4().hex}")
            with contextlib.suppress(OSError):  # another worker took it, or permission is missing
                path.rename(mine)
                bell = _bell_in(mine)
                if bell is not None:
                    return bell
        raise Empty

    def _size(self, queue: str) -> int:
        return len(self._waiting(queue))

    def _purge(self, queue: str) -> int:
        waiting = self._waiting(queue)
        for path in waiting:
            path.unlink(missing_ok=True)
        return len(waiting)

    def _waiting(self, queue: str) -> list[Path]:
        return sorted(self._folder.glob(f"[!.]*.{queue}.msg"))


def _bell_in(taken: Path) -> Any:
    """Return the message to pass to Celery, and delete the file; None if it is not a doorbell message."""
    try:
        return edge.bell(_content(taken))
    except NotABellError as error:
        edge.drop(str(error))
        return None
    finally:
        with contextlib.suppress(OSError):  # a folder; after the rename it no longer looks like a message
            taken.unlink()


def _content(path: Path) -> bytes:
    """Read at most one byte more than the limit. Does not follow links or wait for pipes."""
    try:
        opened = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        raise NotABellError("it cannot be read") from error
    with os.fdopen(opened, "rb") as file:
        if not stat.S_ISREG(os.fstat(opened).st_mode):
            raise NotABellError("it is not a file")
        return file.read(MOST_BYTES + 1)


class Transport(filesystem.Transport):  # type: ignore[misc]  # kombu has no types
    """The `filesystem://` transport of workers and of processes that submit."""

    Channel = Channel
