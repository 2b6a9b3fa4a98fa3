"""Whatever stands in the broker: it is a bell or it is dropped, no worker ends of it, and none turns deaf."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from bounded import FACTOR, bounded
from hypothesis import example, given
from hypothesis import strategies as some
from support.real_services import wait_until
from support.real_workers import Deployment

from bench.bells import HEADERS, is_bell, messages, put
from onboard.broker.bells import Edge, fresh_bell, require_bell
from onboard.domain.job import JobState
from onboard.domain.worker import WorkerState
from onboard.registry.schema import upgrade
from onboard.settings import Settings

MESSAGES, BATCH = 2_000, 500  # FUZZ_FACTOR=50 makes 100,000 of them
documents = some.recursive(
    some.none() | some.booleans() | some.integers() | some.floats(allow_nan=False) | some.text(max_size=20),
    lambda inner: some.lists(inner, max_size=4) | some.dictionaries(some.text(max_size=10), inner, max_size=4),
    max_leaves=10,
)


def rung(**changes: Any) -> bytes:
    bell = fresh_bell()
    bell["headers"] |= changes
    return json.dumps(bell).encode()


@bounded(800)
@given(raw=some.binary(max_size=300) | documents.map(lambda document: json.dumps(document).encode()))
@example(raw=b"[" * 16_000)
@example(raw=b'{"headers":{"task":"onboard.bell"},"body":"WzE="}')
def test_what_is_no_bell_is_dropped_and_nothing_is_thrown(raw: bytes) -> None:
    edge = Edge()
    assert edge.bell(raw) is None
    assert edge.dropped == 1


@bounded(400)
@given(name=some.sampled_from(HEADERS) | some.text(max_size=20), value=documents)
def test_a_bell_with_any_header_is_dropped_or_made_anew_without_it(name: str, value: Any) -> None:
    raw = rung(**{name: value})
    made = Edge().bell(raw)
    assert made is None or made["headers"].keys() == fresh_bell()["headers"].keys()
    if made is not None:
        require_bell(json.dumps(made).encode())


@pytest.fixture(params=["files", pytest.param("redis", marks=pytest.mark.services)])
def deployment(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Deployment]:
    settings = Settings(home=tmp_path / "home")
    if request.param == "redis":
        url, database = request.getfixturevalue("redis_url"), f"sqlite:///{tmp_path}/onboard.db"
        upgrade(database)
        settings = Settings(home=tmp_path / "home", database_url=database, broker_url=url)
    with Deployment(settings, tmp_path) as deployment:
        yield deployment


@pytest.mark.timeout(300 + 30 * FACTOR)
def test_a_worker_outlives_any_messages_and_works_after_them(deployment: Deployment) -> None:
    chance = random.Random(FACTOR)
    worker = deployment.start_worker(deaf_seconds=600)
    wait_until(lambda: deployment.rows()[0].state is WorkerState.RUNNING, what="the worker to be ready")
    dropped = 0
    for _ in range(MESSAGES * FACTOR // BATCH):
        batch = list(messages(chance, BATCH))
        dropped += sum(not is_bell(raw) for raw in batch)
        put(deployment.settings, batch)
        assert worker.process.poll() is None, worker.log.read_text()
    assert dropped > MESSAGES * FACTOR * 0.9
    assert deployment.finished(deployment.submit()).state is JobState.SUCCEEDED
    wait_until(
        lambda: deployment.rows()[0].facts["dropped_messages"] == dropped,
        what=f"{dropped} to be counted: {deployment.rows()[0].facts}",
    )
