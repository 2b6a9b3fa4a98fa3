"""The broker of the embedded default: messages appear whole and are taken once."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Empty

import pytest
from kombu import Connection

from onboard.broker.app import make_app
from onboard.broker.bells import fresh_bell
from onboard.broker.doorbell import CeleryDoorbell
from onboard.settings import Settings


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(home=tmp_path / "home")


@pytest.fixture
def connection(settings: Settings) -> Iterator[Connection]:
    with make_app(settings).connection_for_read() as connection:
        yield connection


def test_a_bell_is_one_whole_file_for_its_queue(settings: Settings, connection: Connection) -> None:
    CeleryDoorbell(settings).ring("gpu")
    (file,) = (settings.resolved_home / "broker").iterdir()
    assert file.name.endswith(".onboard.gpu.msg")
    channel = connection.channel()
    with pytest.raises(Empty):
        channel._get("onboard.default")
    assert channel._size("onboard.gpu") == 1
    message = channel._get("onboard.gpu")
    assert message["headers"]["task"] == "onboard.bell"
    assert message["content-type"] == "application/json"
    assert list((settings.resolved_home / "broker").iterdir()) == []


def test_a_message_that_is_still_being_written_is_not_seen(settings: Settings, connection: Connection) -> None:
    (settings.resolved_home / "broker" / ".000_half.onboard.default.msg").touch()
    with pytest.raises(Empty):
        connection.channel()._get("onboard.default")


def test_many_producers_and_consumers_lose_and_double_nothing(settings: Settings) -> None:
    over = threading.Event()

    def produce() -> None:
        channel = make_app(settings).connection_for_write().channel()
        for _ in range(50):
            channel._put("q", fresh_bell())

    def consume() -> int:
        channel = make_app(settings).connection_for_read().channel()
        heard = 0
        while True:
            last = over.is_set()
            try:
                channel._get("q")
                heard += 1
            except Empty:
                if last:
                    return heard

    with ThreadPoolExecutor(7) as pool:
        consumers = [pool.submit(consume) for _ in range(3)]
        for producer in [pool.submit(produce) for _ in range(4)]:
            producer.result()
        over.set()
        assert sum(consumer.result() for consumer in consumers) == 200


def test_a_consumer_whose_look_at_the_folder_is_stale_gets_nothing(settings: Settings) -> None:
    CeleryDoorbell(settings).ring("default")
    with make_app(settings).connection_for_read() as one, make_app(settings).connection_for_read() as two:
        quick, slow = one.channel(), two.channel()
        stale = slow._waiting("onboard.default")
        slow._waiting = lambda _queue: stale
        assert quick._get("onboard.default")
        with pytest.raises(Empty):
            slow._get("onboard.default")


def test_purging_empties_one_queue_only(settings: Settings, connection: Connection) -> None:
    channel = connection.channel()
    for queue in ("a", "a", "b"):
        channel._put(queue, {})
    assert channel._purge("a") == 2
    assert (channel._size("a"), channel._size("b")) == (0, 1)
