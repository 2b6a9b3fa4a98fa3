"""Whatever lies in the broker, and whatever made a worker deaf: no worker ends, and jobs are not left beside it."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import redis
from support.real_services import wait_until
from support.real_workers import Deployment

from onboard.broker.bells import fresh_bell
from onboard.domain.job import JobState
from onboard.domain.worker import WorkerRecord, WorkerState

QUEUE = "onboard.default"


def put_raw(deployment: Deployment, raw: bytes) -> None:
    """Write to the broker as anybody may who can."""
    url = deployment.settings.resolved_broker_url
    if url.startswith("redis"):
        with redis.Redis.from_url(url) as client:
            client.lpush(QUEUE, raw)
        return
    folder = deployment.settings.resolved_home / "broker"
    aside = folder / f".{uuid.uuid4().hex}"
    aside.write_bytes(raw)
    aside.rename(folder / f"{0:015d}{aside.name}.{QUEUE}.msg")


def with_headers(**headers: Any) -> bytes:
    """A bell but for these headers, as another Celery program with a wrong routing would ring."""
    bell = fresh_bell()
    bell["headers"] |= headers
    return json.dumps(bell).encode()


def row(deployment: Deployment) -> WorkerRecord:
    return deployment.rows()[0]


def dropped(deployment: Deployment, count: int) -> Callable[[], bool]:
    return lambda: row(deployment).facts.get("dropped_messages") == count


ODD = [
    with_headers(timelimit=["x", "y"]), with_headers(timelimit=7), with_headers(eta="2999-01-01T00:00:00"),
    with_headers(eta="soon"), with_headers(expires=[]), with_headers(shadow=["x"]), with_headers(id={}, retries="no"),
    b"", b"\x80", b"{", b"[" * 10_000, b"null", b'{"properties": 1}', b"x" * 100_000,
]  # fmt: skip


def test_what_is_no_bell_neither_ends_nor_deafens_a_worker(deployment: Deployment) -> None:
    worker = deployment.start_worker(deaf_seconds=600)
    wait_until(lambda: row(deployment).state is WorkerState.RUNNING, what="the worker to be ready")
    for raw in ODD:
        put_raw(deployment, raw)
    wait_until(dropped(deployment, len(ODD)), what="all of them to be dropped")
    for _ in range(2):
        assert deployment.finished(deployment.submit()).state is JobState.SUCCEEDED
    assert worker.process.poll() is None
    assert row(deployment).facts["renewals"] == 0
    assert "Dropped an invalid message" in worker.log.read_text()


@pytest.mark.services
def test_what_stands_in_the_place_of_a_queue_is_removed(grown: Deployment) -> None:
    worker = grown.start_worker(deaf_seconds=600)
    wait_until(lambda: row(grown).state is WorkerState.RUNNING, what="the worker to be ready")
    with redis.Redis.from_url(grown.settings.resolved_broker_url) as client:
        client.delete(QUEUE)
        client.set(QUEUE, "a text, and no list")
        job = grown.submit()
        assert grown.finished(job).state is JobState.SUCCEEDED
        wait_until(dropped(grown, 1), what="it to be counted")
    assert worker.process.poll() is None


def test_a_worker_that_turned_deaf_says_so_and_begins_anew(deployment: Deployment, tmp_path: Path) -> None:
    """Its first process drops every bell; the one that takes its place does not."""
    (tmp_path / "deaf").touch()
    (tmp_path / "sitecustomize.py").write_text(
        "import pathlib\n"
        "mark = pathlib.Path(__file__).with_name('deaf')\n"
        "if mark.exists():\n"
        "    mark.unlink()\n"
        "    from onboard.broker.bells import Edge\n"
        "    Edge.bell = lambda edge, raw: None\n"
    )
    worker = deployment.start_worker(modules=tmp_path, deaf_seconds=2.0)
    pid = worker.process.pid
    assert deployment.finished(deployment.submit()).state is JobState.SUCCEEDED
    wait_until(lambda: row(deployment).facts["renewals"] == 1, what="the renewal to be told")
    assert worker.process.poll() is None
    (seen,) = deployment.rows()
    assert (seen.name, seen.pid, seen.state) == (worker.name, pid, WorkerState.RUNNING)
    assert "restarting it" in worker.log.read_text()
    assert deployment.finished(deployment.submit()).state is JobState.SUCCEEDED
    assert row(deployment).facts["renewals"] == 1
