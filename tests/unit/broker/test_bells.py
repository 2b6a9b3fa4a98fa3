"""What comes from the broker is a bell or nothing: the reader, and what the two transports make of anything else."""

from __future__ import annotations

import base64
import json
import logging
import os
from collections.abc import Iterator
from pathlib import Path
from queue import Empty
from typing import Any

import pytest
from celery._state import _task_stack
from kombu import Connection

from onboard.broker.app import make_app
from onboard.broker.bells import MOST_BYTES, Edge, NotABellError, fresh_bell, require_bell
from onboard.broker.doorbell import CeleryDoorbell
from onboard.settings import Settings


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(home=tmp_path / "home")


@pytest.fixture
def folder(settings: Settings) -> Path:
    CeleryDoorbell(settings).ring("other")
    return settings.resolved_home / "broker"


@pytest.fixture
def rung(settings: Settings, folder: Path) -> bytes:
    """A bell as our doorbell rings it."""
    CeleryDoorbell(settings).ring("default")
    (file,) = folder.glob("*.onboard.default.msg")
    content = file.read_bytes()
    file.unlink()
    return content


@pytest.fixture
def connection(settings: Settings) -> Iterator[Connection]:
    with make_app(settings).connection_for_read() as connection:
        yield connection


def with_header(raw: bytes, name: str, value: Any) -> bytes:
    message = json.loads(raw)
    message["headers"][name] = value
    return json.dumps(message).encode()


def test_what_our_doorbell_rings_is_a_bell(rung: bytes) -> None:
    require_bell(rung)
    assert len(rung) < MOST_BYTES / 4


def test_what_a_worker_rings_in_the_midst_of_a_bell_is_a_bell(settings: Settings, folder: Path) -> None:
    """Celery then notes the bell that is being answered as the parent of the next one."""
    app = make_app(settings)

    @app.task(bind=True)  # type: ignore[untyped-decorator]  # celery has no types
    def answer(task: Any) -> None:
        _task_stack.push(task)  # as a worker's process does
        try:
            CeleryDoorbell(settings).ring("default")
        finally:
            _task_stack.pop()

    answer.apply(task_id="a-bell")
    (file,) = folder.glob("*.onboard.default.msg")
    assert json.loads(file.read_bytes())["headers"]["parent_id"] == "a-bell"
    require_bell(file.read_bytes())


def test_a_bell_of_another_release_of_celery_is_one(rung: bytes) -> None:
    require_bell(with_header(rung, "a_header_of_tomorrow", {"x": 1}))
    message = json.loads(rung)
    for name in ("timelimit", "stamps", "replaced_task_nesting", "group_index", "eta"):
        del message["headers"][name]
    require_bell(json.dumps(message).encode())


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("timelimit", ["x", "y"]), ("timelimit", 7), ("timelimit", [1, 1]), ("eta", "2999-01-01T00:00:00"), ("eta", 5),
        ("expires", "1999-01-01T00:00:00"), ("expires", {}), ("shadow", ["x"]), ("retries", 10**9), ("group", "g"),
        ("compression", "zlib"), ("task", "onboard.bell2"), ("task", ["onboard.bell"]), ("task", None),
        ("parent_id", ["x"]),
    ],
)  # fmt: skip
def test_a_bell_whose_headers_ask_for_something_is_none(rung: bytes, name: str, value: Any) -> None:
    with pytest.raises(NotABellError):
        require_bell(with_header(rung, name, value))


@pytest.mark.parametrize(
    "raw",
    [
        b"", b"\x00", b"\xff\xfe", b"null", b"[]", b"{}", b'"onboard.bell"', b"[" * 100_000, b'{"headers": []}',
        b'{"headers": {"task": "onboard.bell"}}', b'{"headers": {"task": "onboard.bell"}, "body": "%%%"}',
        b'{"headers": {"task": "onboard.bell"}, "body": 7}', b"1" * 5_000, b" " * (MOST_BYTES + 1),
        b'{"headers": {"task": "onboard.bell"}, "body": "bnVsbA=="}',
    ],
)  # fmt: skip
def test_what_cannot_be_read_as_a_bell_is_none(raw: bytes) -> None:
    with pytest.raises(NotABellError):
        require_bell(raw)


def test_a_bell_carries_no_work(rung: bytes) -> None:
    message = json.loads(rung)
    message["body"] = base64.b64encode(b'[["rm -rf"], {}, {}]').decode()
    with pytest.raises(NotABellError, match="carries work"):
        require_bell(json.dumps(message).encode())


def test_celery_is_handed_nothing_of_what_came(rung: bytes) -> None:
    mine = Edge().bell(with_header(rung, "origin", "SOMEBODY"))
    assert mine is not None
    assert "SOMEBODY" not in json.dumps(mine)
    assert mine["headers"]["id"] not in rung.decode()
    require_bell(json.dumps(fresh_bell()).encode())


def test_what_is_dropped_is_counted_and_a_flood_is_told_in_one_line(caplog: pytest.LogCaptureFixture) -> None:
    now = 100.0
    edge = Edge(clock=lambda: now)
    with caplog.at_level(logging.WARNING, "workers"):
        for _ in range(1_000):
            assert edge.bell(b"nothing") is None
        assert edge.dropped == 1_000
        assert len(caplog.records) == 1
        now += 11
        edge.drop("it is no file")
    assert "1001 since" in caplog.messages[1]


def test_the_folder_may_hold_anything_and_the_bell_behind_it_is_heard(
    folder: Path, rung: bytes, connection: Connection, tmp_path: Path
) -> None:
    def named(number: int) -> Path:
        return folder / f"{number:015d}_x.onboard.default.msg"

    named(1).write_bytes(b"")
    named(2).mkdir()
    os.mkfifo(named(3))
    (tmp_path / "elsewhere").write_bytes(rung)
    named(4).symlink_to(tmp_path / "elsewhere")
    named(5).write_bytes(b"x" * 10**6)
    named(6).write_bytes(with_header(rung, "timelimit", "x"))
    named(7).write_bytes(rung)
    channel = connection.channel()
    assert channel._get("onboard.default")["headers"]["task"] == "onboard.bell"
    assert (tmp_path / "elsewhere").read_bytes() == rung
    with pytest.raises(Empty):
        channel._get("onboard.default")
    assert channel._size("onboard.default") == 0


def test_a_folder_that_was_swept_away_is_made_anew(folder: Path, settings: Settings, connection: Connection) -> None:
    doorbell = CeleryDoorbell(settings)
    doorbell.ring("other")
    channel = connection.channel()
    for file in folder.iterdir():
        file.unlink()
    folder.rmdir()
    with pytest.raises(Empty):
        channel._get("onboard.default")
    doorbell.ring("default")
    assert channel._get("onboard.default")
