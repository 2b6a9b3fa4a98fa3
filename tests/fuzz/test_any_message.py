"""Whatever stands in the broker: it is a bell or it is dropped, no worker ends of it, and none turns deaf."""

from __future__ import annotations

import json
import random
import uuid
from collections.abc import Iterator, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import redis
from bounded import FACTOR, bounded
from hypothesis import example, given
from hypothesis import strategies as some
from support.real_services import wait_until
from support.real_workers import Deployment

from onboard.domain.job import JobState
from onboard.domain.worker import WorkerState
from onboard.registry.schema import upgrade
from onboard.settings import Settings
from workers.bells import Edge, NotABellError, fresh_bell, require_bell

QUEUE = "onboard.default"
MESSAGES, BATCH = 2_000, 500  # FUZZ_FACTOR=50 makes 100,000 of them
PLACES = ["body", "content-type", "content-encoding", "headers", "properties"]
HEADERS = [
    "task", "id", "timelimit", "eta", "expires", "shadow", "retries", "group", "chord", "callbacks", "errbacks",
    "root_id", "stamps", "stamped_headers", "compression", "ignore_result", "lang", "argsrepr", "origin", "x",
]  # fmt: skip
VALUES: Sequence[Any] = (
    None, True, 0, -1, 1e308, 10**30, "", "x", "\x00", "onboard.bell", "2999-01-01", "1999-01-01T00:00:00Z", "99:99",
    [], [1], [None, None], [0, 0], ["a", "b"], [[[]]], {}, {"a": {}}, {"__type__": "datetime", "__value__": "x"},
)  # fmt: skip
documents = some.recursive(
    some.none() | some.booleans() | some.integers() | some.floats(allow_nan=False) | some.text(max_size=20),
    lambda inner: some.lists(inner, max_size=4) | some.dictionaries(some.text(max_size=10), inner, max_size=4),
    max_leaves=10,
)


def rung(**changes: Any) -> bytes:
    bell = fresh_bell()
    bell["headers"] |= changes
    return json.dumps(bell).encode()


@bounded(2_000)
@given(raw=some.binary(max_size=300) | documents.map(lambda document: json.dumps(document).encode()))
@example(raw=b"[" * 16_000)
@example(raw=b'{"headers":{"task":"onboard.bell"},"body":"WzE="}')
def test_what_is_no_bell_is_dropped_and_nothing_is_thrown(raw: bytes) -> None:
    edge = Edge()
    assert edge.bell(raw) is None
    assert edge.dropped == 1


@bounded(1_000)
@given(name=some.sampled_from(HEADERS) | some.text(max_size=20), value=documents)
def test_a_bell_with_any_header_is_dropped_or_made_anew_without_it(name: str, value: Any) -> None:
    raw = rung(**{name: value})
    made = Edge().bell(raw)
    assert made is None or made["headers"].keys() == fresh_bell()["headers"].keys()
    if made is not None:
        require_bell(json.dumps(made).encode())


def mutant(chance: random.Random) -> bytes:
    """A bell with a part or more changed, cut, or with a byte flipped."""
    bell: Any = fresh_bell()
    for _ in range(1 + chance.randrange(3)):
        inner = [part for part in (bell.get("headers"), bell.get("properties")) if isinstance(part, dict)]
        part = chance.choice([bell, *inner, *inner])
        part[chance.choice(PLACES if part is bell else HEADERS)] = deepcopy(chance.choice(VALUES))
    raw = bytearray(json.dumps(bell).encode())
    if chance.random() < 0.2:
        raw = raw[: 1 + chance.randrange(len(raw))]
    if chance.random() < 0.2:
        raw[chance.randrange(len(raw))] = chance.randrange(256)
    return bytes(raw)


def messages(chance: random.Random, count: int) -> Iterator[bytes]:
    """So many of them. Few are left bells, for each is answered by a look at the database."""
    while count:
        raw = mutant(chance)
        if not is_bell(raw) or chance.random() < 0.03:
            yield raw
            count -= 1


def is_bell(raw: bytes) -> bool:
    try:
        require_bell(raw)
    except NotABellError:
        return False
    return True


@pytest.fixture(params=["files", pytest.param("redis", marks=pytest.mark.services)])
def deployment(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Deployment]:
    settings = Settings(home=tmp_path / "home")
    if request.param == "redis":
        url, database = request.getfixturevalue("redis_url"), f"sqlite:///{tmp_path}/onboard.db"
        upgrade(database)
        settings = Settings(home=tmp_path / "home", database_url=database, broker_url=url)
    with Deployment(settings, tmp_path) as deployment:
        yield deployment


def put(deployment: Deployment, batch: Sequence[bytes]) -> None:
    """Into the broker, and wait until all have been taken."""
    url = deployment.settings.resolved_broker_url
    if url.startswith("redis"):
        with redis.Redis.from_url(url) as client:
            client.lpush(QUEUE, *batch)
            wait_until(lambda: not client.llen(QUEUE), 120.0, "the messages to be taken")
        return
    folder = deployment.settings.resolved_home / "broker"
    for number, raw in enumerate(batch):
        aside = folder / f".{uuid.uuid4().hex}"
        aside.write_bytes(raw)
        aside.rename(folder / f"{number:015d}_x.{QUEUE}.msg")
    wait_until(lambda: not list(folder.glob(f"[!.]*{QUEUE}.msg")), 120.0, "the messages to be taken")


@pytest.mark.timeout(300 + 30 * FACTOR)
def test_a_worker_outlives_any_messages_and_works_after_them(deployment: Deployment) -> None:
    chance = random.Random(FACTOR)
    worker = deployment.start_worker(deaf_seconds=600)
    wait_until(lambda: deployment.rows()[0].state is WorkerState.RUNNING, what="the worker to be ready")
    dropped = 0
    for _ in range(MESSAGES * FACTOR // BATCH):
        batch = list(messages(chance, BATCH))
        dropped += sum(not is_bell(raw) for raw in batch)
        put(deployment, batch)
        assert worker.process.poll() is None, worker.log.read_text()
    assert dropped > MESSAGES * FACTOR * 0.9
    assert deployment.finished(deployment.submit()).state is JobState.SUCCEEDED
    wait_until(
        lambda: deployment.rows()[0].facts["dropped_messages"] == dropped,
        what=f"{dropped} to be counted: {deployment.rows()[0].facts}",
    )
