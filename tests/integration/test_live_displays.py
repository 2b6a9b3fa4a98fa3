"""Live displays on a real terminal: drawn over themselves, and ended quietly by Ctrl-C."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import watched_jobs as past
from support.program import PROGRAM
from support.real_services import PostgresServer

from onboard.registry.schema import upgrade
from onboard.registry.services import Services
from onboard.registry.workers import QueueRepository

SECONDS = 60.0  # for the program to draw
ROWS, COLUMNS = 40, 110
_GAP_SECONDS = 0.1  # without anything new: it is drawn to the end, and the next look is some time away
_CODE = re.compile(r"\x1b\[(\??)(\d*)(?:;\d+)*([A-Za-z])")


class Screen:
    """As much of a terminal as a table needs: text, new lines, the cursor up, lines that are erased."""

    def __init__(self) -> None:
        self.rows = [""]
        self.row = self.column = 0
        self.cursor_shown = True

    def feed(self, text: str) -> None:
        at = 0
        while at < len(text):
            code = _CODE.match(text, at)
            if code is not None:
                self._obey(*code.groups())
                at = code.end()
            else:
                self._put(text[at])
                at += 1

    def _obey(self, private: str, number: str, letter: str) -> None:
        if private:
            self.cursor_shown = letter == "h"
        elif letter == "A":
            self.row = max(0, self.row - int(number or 1))
        elif letter == "K":
            self.rows[self.row] = ""
        else:
            assert letter == "m", f"ESC[{number}{letter} is not understood"

    def _put(self, letter: str) -> None:
        if letter == "\r":
            self.column = 0
        elif letter == "\n":
            self.row += 1
            self.rows += [""] * (self.row + 1 - len(self.rows))
        else:
            row = self.rows[self.row].ljust(self.column)
            self.rows[self.row] = row[: self.column] + letter + row[self.column + 1 :]
            self.column += 1

    def lines(self) -> list[str]:
        return [" ".join(row.split()) for row in self.rows if row.strip()]


class Terminal:
    """A program on a terminal of its own."""

    def __init__(self, home: Path, *words: str) -> None:
        self.screen = Screen()
        self._end, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        self.process = subprocess.Popen(
            [PROGRAM, *words],
            stdin=theirs, stdout=theirs, stderr=theirs, cwd=home, start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # Ctrl-C is a key of one's own terminal
            env={"PATH": os.environ["PATH"], "HOME": str(home), "ONBOARD_HOME": str(home), "TERM": "xterm-256color"},
        )  # fmt: skip
        os.close(theirs)
        self._pending = b""

    def until(self, *words: str) -> list[str]:
        """Read until a line on the screen begins with each of `words`; the lines."""
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline:
            lines = self.screen.lines()
            if all(any(line.startswith(word) for line in lines) for word in words):
                while self._read(_GAP_SECONDS):  # a terminal hands over what is drawn in pieces
                    lines = self.screen.lines()
                return lines
            if not self._read(deadline - time.monotonic()):
                break
        raise AssertionError(f"waited in vain for {words}: {self.screen.lines()}")

    def end(self) -> int:
        """Press Ctrl-C and wait; the exit code."""
        os.write(self._end, b"\x03")
        deadline = time.monotonic() + SECONDS
        while self._read(deadline - time.monotonic()):
            pass
        return self.process.wait(SECONDS)

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._end)

    def _read(self, seconds: float) -> bool:
        if seconds <= 0 or not select.select([self._end], [], [], seconds)[0]:
            return False
        try:
            data = os.read(self._end, 65536)
        except OSError:  # the program has closed its end
            return False
        text, self._pending = _whole(self._pending + data)
        self.screen.feed(text)
        return bool(data)


def _whole(data: bytes) -> tuple[str, bytes]:
    """Whole characters and codes; what was cut off at the end is kept for the next time."""
    cut = data.rfind(b"\x1b")
    if cut < 0 or _CODE.match(data[cut:].decode(errors="replace")):
        cut = len(data)
    while True:
        try:
            return data[:cut].decode(), data[cut:]
        except UnicodeDecodeError as error:
            cut = error.start


@pytest.fixture
def terminal(services: Services) -> Iterator[Terminal]:
    opened = Terminal(services.settings.resolved_home, "queue", "show", "--watch", "--interval", "0.3")
    yield opened
    opened.close()


def test_a_watched_table_is_drawn_over_itself_and_ctrl_c_ends_it_quietly(
    services: Services, terminal: Terminal
) -> None:
    first = terminal.until("default 0 0 0")
    assert terminal.screen.cursor_shown is False
    past.worker(services.database, "w1")
    past.queued(services.database)
    with services.database.write() as session:
        QueueRepository(session).set_paused("held", True)
    second = terminal.until("default 1", "held 0")
    assert len(second) == len(first) + 2  # one line more in each of the two tables: nothing of the first is left
    assert sum(line.startswith("queue queued oldest") for line in second) == 1
    assert second[0].endswith("UTC, every 0.3 s, Ctrl-C ends")
    assert terminal.end() == 130
    last = terminal.screen.lines()
    assert terminal.screen.cursor_shown is True
    assert [line for line in last if "Traceback" in line or "interrupted" in line or "Abort" in line] == []
    assert sum(line.startswith("queue queued oldest") for line in last) == 1


@pytest.fixture
def away_server(postgres: PostgresServer) -> Iterator[PostgresServer]:
    """A PostgreSQL server that may be stopped; that of the other tests is only asked for to know that there is one."""
    with PostgresServer() as server:
        yield server


@pytest.mark.services
def test_watching_goes_on_after_the_database_was_away(away_server: PostgresServer, tmp_path: Path) -> None:
    url = away_server.create("watched")
    upgrade(url)
    environment = {"ONBOARD_DATABASE_URL": url, "ONBOARD_BROKER_URL": "redis://127.0.0.1:1/0", "HOME": str(tmp_path)}
    with subprocess.Popen(
        [PROGRAM, "queue", "show", "--watch", "--json", "--interval", "0.2"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path,
        env={**environment, "PATH": os.environ["PATH"]},
    ) as process:  # fmt: skip
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            assert "queues" in json.loads(process.stdout.readline())
            away_server.stop()
            line_of_error = next(line for line in process.stdout if "error" in json.loads(line))
            assert json.loads(line_of_error)["error"]["code"] == "unavailable"
            away_server.start()
            assert next(line for line in process.stdout if "queues" in json.loads(line))
            process.send_signal(signal.SIGINT)
            assert (process.wait(SECONDS), process.stderr.read()) == (130, "")
        finally:
            process.kill()
