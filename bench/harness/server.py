"""A real `onboard serve` process, for measurements and tests, and who asks it."""

from __future__ import annotations

import http.client
import json
import os
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import psutil

from bench.harness.programs import PROGRAM, environment_of
from onboard.settings import Settings

_END_SECONDS: Final = 30.0
_TIMEOUT_SECONDS: Final = 60.0


@dataclass(frozen=True)
class Server:
    """A server that listens.

    Args:
        url: without a slash at its end.
    """

    url: str
    process: subprocess.Popen[str]


def core_seconds(pid: int) -> float:
    """How long a process has computed, to some ten milliseconds: what else runs on the machine changes it little."""
    times = psutil.Process(pid).cpu_times()
    return float(times.user + times.system)


@contextmanager
def serving(settings: Settings, log: Path, core: int | None = None) -> Iterator[Server]:
    """A server on a free port, without a worker and without a limit of requests; it ends with the block.

    It listens when this begins; the first request waits until it has started.

    Args:
        log: file that its log goes to.
        core: the only one that it may use; None for any.

    Raises:
        RuntimeError: it did not start.
    """
    command = [PROGRAM, "serve", "--no-worker", "--port", "0", "--json"]
    with log.open("ab") as written:
        process = subprocess.Popen(
            command,
            env={**environment_of(settings), "ONBOARD_REQUESTS_PER_MINUTE": "0"},
            stdout=subprocess.PIPE,
            stderr=written,
            text=True,
            preexec_fn=None if core is None else lambda: os.sched_setaffinity(0, {core}),
        )
    with process:
        try:
            yield Server(json.loads(first_document(process, log))["url"], process)
        finally:
            process.terminate()
            try:
                process.wait(_END_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()


def first_document(process: subprocess.Popen[str], log: Path) -> str:
    """The JSON that `onboard serve --json` prints as soon as it listens.

    Args:
        log: where its standard error goes.

    Raises:
        RuntimeError: it ended before.
    """
    assert process.stdout is not None
    text = ""
    while not text.endswith("}\n"):
        line = process.stdout.readline()
        if not line:
            raise RuntimeError(f"the server did not start: {log.read_text(encoding='utf-8')[-500:]}")
        text += line
    return text


class Asker:
    """One kept connection.

    Args:
        url: of the server.
        token: that it asks with.
        timeout_seconds: between two reads of an answer.
    """

    def __init__(self, url: str, token: str, timeout_seconds: float = _TIMEOUT_SECONDS) -> None:
        self._connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=timeout_seconds)
        self._token = {"Authorization": f"Bearer {token}"}

    def ask(self, path: str, status: int = 200, headers: Mapping[str, str] | None = None) -> str:
        """One GET; returns its ETag. Raises RuntimeError when it is answered with another status."""
        return self._answer("GET", path, status, headers)[0].get("ETag", "")

    def size(self, path: str, headers: Mapping[str, str] | None = None) -> int:
        """Bytes of what one GET is answered with. Raises RuntimeError as `ask`."""
        return len(self._answer("GET", path, 200, headers)[1])

    def document(self, path: str) -> dict[str, Any]:
        """The document that one GET is answered with. Raises RuntimeError as `ask`."""
        document: dict[str, Any] = json.loads(self._answer("GET", path, 200, None)[1])
        return document

    def post(
        self,
        path: str,
        status: int = 200,
        headers: Mapping[str, str] | None = None,
        body: Iterable[bytes] | None = None,
    ) -> dict[str, Any]:
        """One POST whose body is sent as it is made; returns the document. Raises RuntimeError as `ask`."""
        document: dict[str, Any] = json.loads(self._answer("POST", path, status, headers, body)[1])
        return document

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def _answer(
        self,
        method: str,
        path: str,
        status: int,
        headers: Mapping[str, str] | None,
        body: Iterable[bytes] | None = None,
    ) -> tuple[http.client.HTTPMessage, bytes]:
        self._connection.request(method, path, body, {**self._token, **(headers or {})})
        answer = self._connection.getresponse()
        content = answer.read()
        if answer.status != status:
            raise RuntimeError(f"{path}: {answer.status} {content[:300]!r}")
        return answer.headers, content
