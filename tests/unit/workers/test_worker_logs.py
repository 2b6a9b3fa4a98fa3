"""What a worker's log looks like, and what never gets into it."""

from __future__ import annotations

import io
import json
import logging
import threading
from collections.abc import Iterator
from contextvars import copy_context
from pathlib import Path
from typing import Any

import pytest
from support.real_services import wait_until

from onboard.domain.job import Stage
from onboard.errors import InputError
from onboard.operations import worker_logs
from onboard.operations.worker_logs import full_log_file, log_file, shorten_log
from onboard.registry.database import Database
from onboard.registry.jobs import to_job
from onboard.registry.tables import JobRow
from onboard.settings import LogFormat, Settings
from workers.logs import log_fields, log_stage, make_handler, take_over_loggers
from workers.progress import job_heartbeat

SECRET = "pa-ss:w/rd"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Log:
    """A logger of its own, written to memory."""

    def __init__(self, log_format: LogFormat = "json", stream: io.StringIO | None = None) -> None:
        self._stream = stream or io.StringIO()
        self.logger = logging.Logger("onboard.test")
        self.logger.addHandler(make_handler(self._stream, log_format, "w1"))

    @property
    def text(self) -> str:
        return self._stream.getvalue()

    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.text.splitlines()]


def fail(message: str) -> None:
    raise ValueError(message)


LINE_ENDS = "a\u2028b\u2029c\x85d\x0be\x0cf\x1cg\x1dh\x1ei\r\nj"


def test_a_record_is_one_line_to_every_reader_whatever_is_in_it() -> None:
    log = Log()
    try:
        fail(LINE_ENDS)
    except ValueError:
        log.logger.exception("%s \ud800 ü", LINE_ENDS, extra={"task": LINE_ENDS})
    (text, *rest) = log.text.splitlines()
    assert rest == []
    line = json.loads(text)
    assert line["message"] == f"{LINE_ENDS} \ud800 ü"
    assert (line["task"], LINE_ENDS in line["trace"]) == (LINE_ENDS, True)
    assert "ü" in text
    text.encode()


def test_a_line_is_one_json_object_with_time_level_logger_message_and_worker() -> None:
    log = Log()
    log.logger.info("two\nlines, %s\n", "ü")
    (line,) = log.lines()
    assert line.pop("time").endswith("Z")
    assert line == {"level": "INFO", "logger": "onboard.test", "message": "two\nlines, ü", "worker": "w1"}


def test_a_trace_is_a_field() -> None:
    log = Log()
    try:
        fail("x")
    except ValueError:
        log.logger.exception("It failed")
    (line,) = log.lines()
    assert line["message"] == "It failed"
    assert line["trace"].startswith("Traceback")
    assert line["trace"].endswith("ValueError: x")


def test_lines_say_of_which_attempt_they_are_until_it_is_over() -> None:
    log = Log()
    with log_fields(job="j", task="t", attempt=2):
        log.logger.info("before")
        log_stage(Stage.TRAIN)
        log.logger.info("in")
    log_stage(Stage.PROBE)
    log.logger.info("after")
    before, within, after = log.lines()
    assert (before["job"], before["task"], before["attempt"]) == ("j", "t", 2)
    assert "stage" not in before
    assert (within["job"], within["stage"]) == ("j", "train")
    assert after.keys() == {"time", "level", "logger", "message", "worker"}


def test_a_thread_of_the_attempt_says_so_too_with_the_stage_of_the_moment() -> None:
    log = Log()
    with log_fields(job="j"):
        thread = threading.Thread(target=copy_context().run, args=(log.logger.info, "beat"))
        log_stage(Stage.TRAIN)
        thread.start()
        thread.join()
    (line,) = log.lines()
    assert (line["job"], line["stage"]) == ("j", "train")


def test_the_thread_that_keeps_the_lease_speaks_of_its_job() -> None:
    log = Log()
    logger = logging.getLogger("workers.progress")
    logger.addHandler(log.logger.handlers[0])
    job = to_job(JobRow(id="j", spec={"task": "t", "dataset": "d"}, state="running", attempt=1))
    try:
        with log_fields(job="j"), job_heartbeat(Database("sqlite:////nowhere/x.db"), job, 1.0, 0.01):
            wait_until(lambda: log.text, what="a beat that fails")
    finally:
        logger.removeHandler(log.logger.handlers[0])
    assert log.lines()[0]["message"].startswith("No heartbeat: The database")
    assert log.lines()[0]["job"] == "j"


def test_what_a_line_is_given_wins_over_where_it_was_logged() -> None:
    log = Log()
    with log_fields(job="mine"):
        log.logger.info("x", extra={"job": "other"})
    assert log.lines()[0]["job"] == "other"


def test_people_get_readable_lines_on_a_terminal_and_programs_get_json_elsewhere() -> None:
    shown, written = Log("auto", Terminal()), Log("auto")
    for log in (shown, written):
        with log_fields(job="j", attempt=1):
            log.logger.warning("Disk full\n")
    time, _, rest = shown.text.partition(" ")
    assert time.endswith("Z")
    assert rest == "WARNING onboard.test: Disk full  [job=j attempt=1 worker=w1]\n"
    assert written.lines()[0]["message"] == "Disk full"


def test_the_format_can_be_forced() -> None:
    as_json, as_text = Log("json", Terminal()), Log("text")
    for log in (as_json, as_text):
        log.logger.warning("x")
    assert as_json.lines()[0]["message"] == "x"
    assert as_text.text.endswith("WARNING onboard.test: x  [worker=w1]\n")


@pytest.mark.parametrize("log_format", ["json", "text"])
@pytest.mark.parametrize(
    ("said", "shown"),
    [
        (f"postgresql+psycopg://onboard:{SECRET}@db:5432/onboard is away", "postgresql+psycopg://onboard:***@db:5432"),
        (f"Cannot connect to rediss://:{SECRET}@redis:6379/0: refused", "rediss://:***@redis:6379/0"),
        (f"postgresql://db/onboard?user=u&password={SECRET}&sslmode=require", "password=***&sslmode=require"),
        (f"postgresql://db/onboard?sslpassword={SECRET}", "sslpassword=***"),
        (f"host=db password='{SECRET}' dbname=x", "password=*** dbname=x"),
    ],
)
def test_passwords_are_hidden_in_messages_and_traces(log_format: LogFormat, said: str, shown: str) -> None:
    log = Log(log_format)
    try:
        fail(said)
    except ValueError:
        log.logger.exception("It failed: %s", said)
    assert SECRET not in log.text
    assert log.text.count(shown) == 2


def test_a_url_without_a_password_is_left_alone() -> None:
    log = Log()
    log.logger.info("http://127.0.0.1:9100/metrics, mail to a@b, postgresql://onboard@db/x")
    assert log.lines()[0]["message"] == "http://127.0.0.1:9100/metrics, mail to a@b, postgresql://onboard@db/x"


@pytest.fixture
def talkative() -> Iterator[logging.Logger]:
    """A library that brings a handler of its own, as transformers does."""
    logger = logging.getLogger("talkative_library")
    logger.addHandler(logging.StreamHandler(io.StringIO()))
    logger.propagate = False
    yield logger
    logger.handlers, logger.propagate = [], True


def test_libraries_speak_through_our_handler_only(talkative: logging.Logger) -> None:
    take_over_loggers()
    assert talkative.handlers == []
    assert talkative.propagate


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder whose worker's log may have 10 bytes."""
    monkeypatch.setattr(worker_logs, "LOG_BYTES", 10)
    log_file(tmp_path).parent.mkdir()
    return tmp_path


def test_a_log_that_is_too_long_moves_to_the_other_file_and_its_writer_goes_on(home: Path) -> None:
    with log_file(home).open("a", buffering=1) as worker:
        for line in ("first line\n", "second line\n", "third\n"):
            worker.write(line)
            shorten_log(home)
    assert full_log_file(home).read_text() == "second line\n"
    assert log_file(home).read_text() == "third\n"


def test_a_full_disk_does_not_keep_the_log_from_being_shortened(home: Path) -> None:
    log_file(home).write_text("a long line\n")
    full_log_file(home).mkdir()  # cannot be written
    shorten_log(home)
    assert log_file(home).read_text() == ""


def test_a_log_that_is_not_there_or_short_enough_is_left_alone(home: Path) -> None:
    shorten_log(home)
    assert not log_file(home).exists()
    log_file(home).write_text("0123456789")
    shorten_log(home)
    assert log_file(home).read_text() == "0123456789"
    assert not full_log_file(home).exists()


@pytest.mark.parametrize(("given", "meant"), [("JSON", "json"), ("text", "text"), ("", "auto")])
def test_the_format_is_a_setting(monkeypatch: pytest.MonkeyPatch, given: str, meant: str) -> None:
    monkeypatch.setenv("ONBOARD_LOG_FORMAT", given)
    assert Settings().log_format == meant


def test_an_unknown_format_is_refused_with_those_that_exist(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONBOARD_LOG_FORMAT", "xml")
    with pytest.raises(InputError) as raised:
        Settings()
    assert "auto, json, text" in raised.value.remedy
