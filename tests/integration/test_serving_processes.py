"""`onboard serve` as a process: when it refuses to start, how it is signed in to, what it logs, how it ends."""

from __future__ import annotations

import http.client
import json
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from email.message import Message
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from support.program import PROGRAM, Place, kill_tree, remedy_of
from support.real_jobs import opinions

from bench.harness.server import first_document
from onboard.api.serve import GRACE_SECONDS
from onboard.bases import Base

Answer = tuple[int, Message]
TOKEN = "0123456789abcdef0123456789abcdef"


class Serving:
    """A server process that has said where it listens."""

    def __init__(self, place: Place, *words: str, **settings: str) -> None:
        self._log = (place.folder / "serve.log").open("w+")
        self.process = subprocess.Popen(
            [PROGRAM, "serve", "--port", "0", "--no-worker", "--json", *words],
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            cwd=place.folder,
            env={**place.environment, **settings},
        )
        self.printed = first_document(self.process, Path(self._log.name))
        document = json.loads(self.printed)
        self.link: str | None = document["sign_in"]
        self.port = urlsplit(document["url"]).port

    def said(self) -> str:
        return Path(self._log.name).read_text()

    @contextmanager
    def asked(
        self, method: str, path: str, body: bytes | None = None, **headers: str
    ) -> Iterator[http.client.HTTPResponse]:
        """An answer that is still to be read."""
        with closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)) as connection:
            connection.request(method, path, body, {name.replace("_", "-"): value for name, value in headers.items()})
            with connection.getresponse() as answer:
                yield answer

    def ask(self, method: str, path: str, body: bytes | None = None, **headers: str) -> Answer:
        with self.asked(method, path, body, **headers) as answer:
            answer.read()
            return answer.status, answer.headers

    def bearer(self, path: str, token: str = TOKEN) -> int:
        return self.ask("GET", path, Authorization=f"Bearer {token}")[0]

    def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(GRACE_SECONDS + 30)

    def close(self) -> None:
        kill_tree(self.process.pid)
        self.process.communicate()
        self._log.close()


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, tiny_base: Base) -> Iterator[Place]:
    place = Place(tmp_path_factory.mktemp("served"), tiny_base.folder)
    yield place
    place.leave()


@pytest.fixture
def file(place: Place) -> Path:
    path = place.folder / "token"
    path.write_text(TOKEN + "\n")
    path.chmod(0o600)
    return path


@pytest.fixture
def local(place: Place) -> Iterator[Serving]:
    serving = Serving(place)
    yield serving
    serving.close()


def test_where_others_reach_it_it_does_not_start_without_a_token(place: Place, file: Path) -> None:
    done = place.run("serve", "--host", "0.0.0.0", "--port", "0")
    assert done.returncode == 6
    assert "onboard token create NAME --scope admin" in remedy_of(done)
    for text in ("", "short"):
        file.write_text(text)
        done = place.run("serve", "--host", "0.0.0.0", "--port", "0", ONBOARD_BOOTSTRAP_TOKEN_FILE=str(file))
        assert (done.returncode, "openssl rand" in remedy_of(done)) == (2, True)
    done = place.run("serve", "--port", "0", ONBOARD_BOOTSTRAP_TOKEN_FILE=str(file.with_name("nothing")))
    assert (done.returncode, "ONBOARD_BOOTSTRAP_TOKEN_FILE" in remedy_of(done)) == (6, True)


def test_with_a_token_in_a_file_it_starts_and_warns_of_a_file_and_of_a_line_that_others_read(
    place: Place, file: Path
) -> None:
    file.chmod(0o644)
    serving = Serving(place, "--host", "0.0.0.0", ONBOARD_BOOTSTRAP_TOKEN_FILE=str(file))
    try:
        assert serving.link is None
        assert [serving.bearer("/v1/jobs", token) for token in (TOKEN, "wrong")] == [200, 401]
        assert serving.ask("GET", f"/login?code={TOKEN}")[0] == 401
        form = {"Content_Type": "application/x-www-form-urlencoded", "Sec_Fetch_Site": "same-origin"}
        _, headers = serving.ask("POST", "/login", f"token={TOKEN}".encode(), **form)
        assert "Secure" not in headers["Set-Cookie"]
        assert "chmod 600" in serving.said()
        assert "plain HTTP" in serving.said()
        assert serving.end() == 0
        for printed in (serving.printed, serving.said()):
            assert TOKEN not in printed
            assert "/login?" not in printed
    finally:
        serving.close()


def test_the_link_signs_one_browser_in_once(local: Serving) -> None:
    assert local.link is not None
    path = local.link.removeprefix(f"http://127.0.0.1:{local.port}")
    assert path.startswith("/login?code=")
    status, headers = local.ask("GET", path, X_Forwarded_Proto="https", X_Forwarded_For="10.9.9.9")
    cookie = headers["Set-Cookie"]
    assert (status, headers["Location"]) == (303, "/")
    assert "HttpOnly" in cookie
    assert "SameSite=lax" in cookie
    assert "Secure" not in cookie  # nobody may say that this is https
    session, pause = cookie.partition(";")[0], "/v1/queue/pause"
    assert local.ask("GET", "/docs", Cookie=session)[0] == 200
    assert local.ask("GET", path)[0] == 401
    assert local.ask("POST", pause, b"{}", Cookie=session, Content_Type="application/json")[0] == 403
    assert local.ask("POST", "/logout", Cookie=session, Origin=f"http://127.0.0.1:{local.port}")[0] == 303
    assert local.ask("GET", "/docs", Cookie=session)[0] == 401
    assert local.end(signal.SIGINT) == 0
    assert session.partition("=")[2] not in local.said()
    assert path.partition("=")[2] not in local.said()


def test_a_proxy_that_is_trusted_says_who_asks_and_that_it_speaks_tls(place: Place, file: Path) -> None:
    settings = {"ONBOARD_TRUSTED_PROXIES": "127.0.0.0/8", "ONBOARD_REQUESTS_PER_MINUTE": "1"}
    serving = Serving(place, "--host", "0.0.0.0", ONBOARD_BOOTSTRAP_TOKEN_FILE=str(file), **settings)
    try:
        assert "plain HTTP" not in serving.said()
        callers = ("10.0.0.1", "10.0.0.2", "10.0.0.1", "10.0.0.2, 127.0.0.9", "10.0.0.3, 10.0.0.1")
        statuses = [serving.ask("GET", "/login", X_Forwarded_For=caller)[0] for caller in callers]
        assert statuses == [200, 200, 429, 429, 429]
        form = {"Content_Type": "application/x-www-form-urlencoded", "Sec_Fetch_Site": "same-origin"}
        _, headers = serving.ask("POST", "/login", f"token={TOKEN}".encode(), X_Forwarded_Proto="https", **form)
        assert "Secure" in headers["Set-Cookie"]
    finally:
        serving.close()


def test_another_start_does_not_take_the_port(local: Serving, place: Place) -> None:
    done = place.run("serve", "--port", str(local.port))
    assert (done.returncode, remedy_of(done)) == (5, "Choose another --port.")


def test_told_to_leave_it_ends_streams_of_events_at_once_and_says_nothing_bad(local: Serving, place: Place) -> None:
    token = place.json("token", "create", "--scope", "read,submit", "--expires", "1h")["secret"]
    rows = place.write("mood.jsonl", opinions(8))
    job = place.json("submit", "--dataset", rows, ONBOARD_API_URL=f"http://127.0.0.1:{local.port}", ONBOARD_TOKEN=token)
    path, headers = f"/v1/jobs/{job['job']}/events", {"Authorization": f"Bearer {token}"}
    with (
        closing(socket.create_connection(("127.0.0.1", local.port or 0), timeout=60)) as idle,
        local.asked("GET", path, **headers) as stream,
    ):
        assert stream.readline().startswith(b"id: ")
        local.process.send_signal(signal.SIGTERM)
        rest = stream.read()  # it comes to its end, and is not cut off in a line
        assert idle.recv(1) == b""
    assert b"event: end" not in rest
    assert rest.endswith(b"\n\n")
    assert local.process.wait(GRACE_SECONDS) == 0  # within less than the grace
    assert "ERROR" not in local.said()
    assert token not in local.said()
    assert [worker.name for worker in place.workers()] == []  # --no-worker


def test_what_is_no_http_is_refused_and_does_not_stop_it(local: Serving) -> None:
    for sent in (b"\x16\x03\x01\x02\x00\x01" * 10, b"GET / HTTP/1.1\r\nX: " + b"x" * 100_000, b"GET /\r\n\r\n"):
        with socket.create_connection(("127.0.0.1", local.port or 0), timeout=60) as raw:
            with suppress(ConnectionError):  # it may hang up before it has read all
                raw.sendall(sent)
                raw.shutdown(socket.SHUT_WR)
            assert refused(raw)
    assert local.ask("GET", "/healthz")[0] == 200
    assert local.ask("GET", "/healthz", Host="evil.example")[0] == 421


def refused(raw: socket.socket) -> bool:
    """Whether what came until the connection was closed is an error, or nothing."""
    answer = b""
    with suppress(ConnectionError):
        while part := raw.recv(65536):
            answer += part
    return not answer or answer.startswith(b"HTTP/1.1 4")
