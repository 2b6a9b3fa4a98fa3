"""Redis killed at the worst moments of a bell: the worker hears the next one, and nothing is left behind."""

from __future__ import annotations

import logging
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from kombu import Connection, Consumer, Queue
from kombu.transport.virtual import base
from support.real_services import RedisServer

from onboard.broker.app import broker_queue
from onboard.broker.doorbell import CeleryDoorbell
from onboard.settings import Settings
from workers.app import make_worker_app
from workers.plan import WorkerPlan

pytestmark = pytest.mark.services


class Ear:
    """Consumes bells as a worker does: one in hand at a time."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.heard: list[Any] = []

    def listen(self) -> None:
        self.connection.drain_events(timeout=10)

    @property
    def channel(self) -> Any:
        return self.connection.default_channel


@pytest.fixture
def settings(tmp_path: Path, redis_url: str) -> Settings:
    return Settings(home=tmp_path, database_url="sqlite://", broker_url=redis_url)


@contextmanager
def ear_of(settings: Settings) -> Iterator[Ear]:
    app = make_worker_app(WorkerPlan(settings=settings, name="w"))
    name = broker_queue("default")
    with app.connection_for_read() as connection:
        ear = Ear(connection)
        ear.channel.basic_qos(0, 1, False)
        queue = Queue(name, exchange="", routing_key=name)
        with Consumer(ear.channel, [queue], callbacks=[lambda body, message: ear.heard.append(message)]):
            yield ear


def test_a_bell_whose_acknowledgement_breaks_off_does_not_make_the_worker_deaf(
    settings: Settings, redis_server: RedisServer
) -> None:
    bell = CeleryDoorbell(settings)
    with ear_of(settings) as ear:
        bell.ring("default")
        ear.listen()
        assert not ear.channel.qos.can_consume()
        redis_server.kill()
        ear.heard[0].ack_log_error(logging.getLogger("test"), ear.connection.connection_errors)
        redis_server.start()
        assert ear.channel.qos.can_consume()
        bell.ring("default")
        with pytest.raises(ear.connection.connection_errors):
            ear.listen()  # Celery connects anew when it meets this
        ear.listen()
        assert len(ear.heard) == 2


def test_a_redis_that_vanished_without_a_word_is_noticed_within_half_a_minute(settings: Settings) -> None:
    with ear_of(settings) as ear:
        line = ear.channel.client.connection_pool.get_connection()._sock
        options = [socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT, socket.TCP_USER_TIMEOUT]
        assert line.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        idle, interval, count, unanswered = (line.getsockopt(socket.IPPROTO_TCP, option) for option in options)
        assert idle + interval * count <= 30
        assert unanswered == 30_000  # milliseconds


def test_a_bell_in_hand_when_redis_goes_is_forgotten_and_not_dumped_into_a_file(
    settings: Settings, redis_server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    dumped: list[Any] = []
    monkeypatch.setattr(base, "emergency_dump_state", lambda *given, **named: dumped.append(given))
    with ear_of(settings) as ear:
        CeleryDoorbell(settings).ring("default")
        ear.listen()
        redis_server.kill()
        ear.channel.close()
        redis_server.start()
    assert dumped == []
    assert redis_server.length(broker_queue("default")) == 0
