"""Tuned and plain jobs that publish at once: one line of hypernetworks, nothing lost, and nobody unguarded."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
from support.real_jobs import Desk, opinions
from support.tuned_jobs import line_of, record_of, tune_gently

from onboard.bases import Base
from onboard.domain.job import Job, JobSpec, JobState
from onboard.hypernetworks.register import register_base
from onboard.pipeline import run as pipeline
from onboard.registry.database import Database
from onboard.registry.services import Services
from onboard.settings import Settings
from onboard.storage.artifacts import ArtifactStore

TUNING, PLAIN = ("tuned-a", "tuned-b"), ("plain-a", "plain-b")


class _OneThinksAtATime:
    """Jobs in threads that share a model: one computes at a time, but all publish at once."""

    def __init__(self, jobs: int) -> None:
        self._turn = threading.Lock()
        self._all_there = threading.Barrier(jobs, timeout=240)
        self._mine = threading.local()
        self.errors: list[BaseException] = []

    def run(self, desk: Desk, job: Job) -> None:
        try:
            with self._turn:
                desk.run(job)
        except BaseException as error:  # noqa: BLE001 - a thread's error is the test's
            self.errors.append(error)
            self._all_there.abort()

    def publishing(self, publish: Any) -> Any:
        def at_once(*arguments: Any) -> Any:
            self._turn.release()
            try:
                if not getattr(self._mine, "met", False):
                    self._mine.met = True
                    self._all_there.wait()
                return publish(*arguments)
            finally:
                self._turn.acquire()

        return at_once


@pytest.mark.usefixtures("few_steps")
def test_two_tuned_and_two_plain_jobs_that_publish_at_once_end_in_one_line(
    database: Database, tiny_base: Base, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tune_gently(monkeypatch)
    monkeypatch.setattr(JobSpec, "provisional", False)
    store = ArtifactStore(str(tmp_path / "artifacts"))
    services = Services(Settings(home=tmp_path, base=str(tiny_base.folder)), database, store, "cpu")
    register_base(services, tiny_base)
    desk = Desk(services, tmp_path)
    jobs = []
    for number, task in enumerate((*TUNING, *PLAIN)):
        desk.submit(
            opinions(20 + 2 * number), task, init="sst2", tune_hypernetwork="always" if task in TUNING else "never"
        )
        jobs.append(desk.claim(pid=number + 1))
    together = _OneThinksAtATime(len(jobs))
    monkeypatch.setattr(pipeline, "publish", together.publishing(pipeline.publish))
    threads = [threading.Thread(target=together.run, args=[desk, job]) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(300)
    assert together.errors == []
    assert {desk.job(job.id).state for job in jobs} == {JobState.SUCCEEDED}
    line = line_of(services, tiny_base)
    assert [(head.version, head.parent) for head in line] == [(1, None), (2, 1), (3, 2)]
    assert record_of(services, tiny_base).head == 3
    published = {task: desk.version(f"{task}@v1") for task in (*TUNING, *PLAIN)}
    assert sorted(published[task].hypernetwork_version for task in TUNING) == [2, 3]
    assert {published[task].hypernetwork_version for task in PLAIN} == {1}
    for head in line[1:]:
        before = {
            version.reference
            for version in published.values()
            if version.created_at < head.created_at and version.job != head.job
        }
        passed = {task["task"] for task in head.metrics["guard"]["tasks"] if task["verdict"] == "pass"}
        assert {"sst2@v1", "stsb@v1"} | before <= passed
