"""The hunter of bench/chaos kills what is there, and says so when nothing is."""

from __future__ import annotations

import random
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.chaos.fleet import Fleet, Worker
from bench.chaos.journal import Journal
from bench.chaos.prey import Hunter
from bench.harness.services import wait_until
from onboard.registry.services import Services


class Herd(Fleet):
    """Processes that stand for workers."""

    def __init__(self, *workers: Worker) -> None:
        self._workers = workers

    def alive(self) -> list[Worker]:
        return [worker for worker in self._workers if worker.alive]


@contextmanager
def worker(script: str) -> Iterator[Worker]:
    process = subprocess.Popen(["sh", "-c", script], stdin=subprocess.PIPE)
    with process:
        yield Worker("w1", process)
        process.kill()


def test_a_child_that_is_not_there_yet_is_not_counted_as_killed(services: Services, tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.jsonl")
    with worker("read wait") as starting, worker("sleep 60; exit 7") as ready:
        hunter = Hunter(Herd(starting), services.database, journal, random.Random(0))
        assert not hunter.kill("child", None)
        assert (starting.process.poll(), journal.of("kill")) == (None, [])
        wait_until(lambda: ready.child() is not None, 10, "a child")
        assert Hunter(Herd(starting, ready), services.database, journal, random.Random(0)).kill("child", None)
        assert ready.process.wait(10) == 7
        assert [kill["stage"] for kill in journal.of("kill")] == ["idle"]
        assert Hunter(Herd(starting), services.database, journal, random.Random(0)).kill("parent", None)
        assert starting.process.wait(10) == -signal.SIGKILL
