"""Downstream services that request the latest embeddings all the while, from a real server process."""

from __future__ import annotations

import http.client
import random
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from bench.chaos.auditor import Answer, Auditor, Seen
from bench.chaos.place import Deployment
from bench.chaos.submitter import TASKS
from bench.harness.server import serving
from onboard.domain.access import Scope
from onboard.operations.access import create_token
from onboard.registry.services import Services

PAUSE_SECONDS: Final = 2.0  # of a reader between two requests, on average
_TIMEOUT_SECONDS: Final = 120.0  # beyond every fault that a plan has
_ASKS_ANEW: Final = 0.2  # share of the requests without the ETag of what the reader has
_ALL: Final = 0.2  # share of the requests for all tasks


@contextmanager
def reading(place: Deployment, services: Services, readers: int, folder: Path, pause: float) -> Iterator[Auditor]:
    """So many readers of a server of this place, as long as the block lasts.

    Args:
        services: the registry without the proxy.
        folder: where the server's log goes.
        pause: seconds of each between two requests, on average.
    """
    auditor = Auditor()
    if not readers:
        yield auditor
        return
    _, token = create_token(services.database, "readers", [Scope.READ.value])
    over = threading.Event()
    with serving(place.settings, folder / "server.log") as server:
        threads = [Reader(server.url, token, number, auditor, over, pause) for number in range(readers)]
        threads[0].ask(None)  # the server has started before anything is broken
        try:
            for thread in threads:
                thread.start()
            yield auditor
        finally:
            over.set()
            for thread in threads:
                thread.join()
        for thread in threads[:TASKS]:  # when all is quiet, everybody hears of what was published last
            auditor.end(thread.task, thread.ask(thread.task))
            thread.close()


class Reader(threading.Thread):
    """Requests the latest embedding of one task or of all, over one connection.

    Args:
        number: which of the readers; every third wants files.
        over: when it is set, the reader ends.
        pause: seconds between two requests, on average.
    """

    def __init__(
        self, url: str, token: str, number: int, auditor: Auditor, over: threading.Event, pause: float
    ) -> None:
        super().__init__(name=f"reader-{number}", daemon=True)
        self.task = f"task-{number % TASKS}"
        self._connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=_TIMEOUT_SECONDS)
        self._authorization = f"Bearer {token}"
        self._file = number % 3 == 0
        self._auditor = auditor
        self._over = over
        self._pause = pause
        self._rng = random.Random(number)
        self._tags: dict[str, str] = {}
        self._version = 0

    def run(self) -> None:
        """Ask until it is over."""
        while not self._over.wait(self._rng.uniform(0, 2 * self._pause)):
            task = None if self._rng.random() < _ALL else self.task
            has = self._rng.random() >= _ASKS_ANEW
            self.ask(task, self._tags.get(_path(task, self._file), "") if has else "")
        self.close()

    def close(self) -> None:
        """Close the connection; the next request would open another one."""
        self._connection.close()

    def ask(self, task: str | None, sent: str = "") -> list[Seen]:
        """One request, of which the auditor hears; returns the versions that the answer tells.

        Args:
            task: None requests all.
            sent: ETag of what the reader has.
        """
        path = _path(task, self._file)
        known = self._auditor.known(task)
        started = time.monotonic()
        try:
            answer = self._asked(task, path, sent, known)
        except (OSError, http.client.HTTPException) as error:
            self.close()
            self._auditor.unanswered(task, error)
            return []
        versions = self._auditor.take(answer, time.monotonic() - started)
        if answer.status == 200:
            self._tags[path] = answer.headers.get("etag", "")
        self._require_no_older(seen.version for seen in versions if seen.task == self.task)
        return versions

    def _asked(self, task: str | None, path: str, sent: str, known: bool) -> Answer:
        headers = {"Authorization": self._authorization, **({"If-None-Match": sent} if sent else {})}
        self._connection.request("GET", path, headers=headers)
        got = self._connection.getresponse()
        body = got.read()
        lower_case = {name.lower(): value for name, value in got.getheaders()}
        return Answer(task, task is not None and self._file, sent, known, got.status, lower_case, body)

    def _require_no_older(self, versions: Iterable[int]) -> None:
        """In a run `latest` only moves on: whoever has seen a version never gets an older one."""
        for version in versions:
            if version < self._version:
                self._auditor.tell(f"{self.task}: v{version} came after v{self._version}")
            self._version = max(self._version, version)


def _path(task: str | None, file: bool) -> str:
    if task is None:
        return "/v1/embeddings"
    return f"/v1/tasks/{task}/embeddings/latest{'.safetensors' if file else ''}"
