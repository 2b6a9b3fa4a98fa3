"""Kombu's filesystem transport, made safe for several processes.

The stock one writes a message in place, so that a reader may take a file that is still empty and die of it, keeps its
exchanges in files with the same race, and moves what it reads through the machine's shared temporary folder. Here a
message appears whole (written aside, then renamed), is taken by one rename, and goes straight to the queue of its
routing key.
"""

from __future__ import annotations

import contextlib
import time
import uuid
from pathlib import Path
from queue import Empty
from typing import Any

from kombu.transport import filesystem
from kombu.utils.json import dumps, loads

from onboard.domain.private import private_file


class Channel(filesystem.Channel):  # type: ignore[misc]  # kombu has no types
    """Messages are files `<milliseconds>_<random>.<queue>.msg` in `data_folder_in`."""

    @property
    def _folder(self) -> Path:
        return Path(self.data_folder_in)

    def _queue_bind(self, exchange: str, routing_key: str, pattern: str, queue: str) -> None:
        """Nothing to write: bells are published to the anonymous exchange, whose routing key is the queue."""

    def _put(self, queue: str, payload: Any, **_options: Any) -> None:
        name = f"{int(time.time() * 1000):015d}_{uuid.uuid4().hex}.{queue}.msg"
        aside = self._folder / f".{name}"
        private_file(aside).write_bytes(dumps(payload).encode())
        aside.rename(self._folder / name)

    def _get(self, queue: str) -> Any:
        for path in self._waiting(queue):
            mine = path.with_name(f".taken-{uuid.uuid4().hex}")
            with contextlib.suppress(FileNotFoundError):  # another worker was quicker
                path.rename(mine)
                payload = mine.read_bytes()
                mine.unlink()
                return loads(payload.decode())
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


class Transport(filesystem.Transport):  # type: ignore[misc]  # kombu has no types
    """`filesystem://` as the worker's and the submitter's Celery app use it."""

    Channel = Channel
