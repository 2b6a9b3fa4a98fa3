"""kill -9 and a full disk: jobs go on afterwards, and nothing is half written."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.program import Place, kill_tree, remedy_of
from support.real_jobs import opinions
from support.real_services import wait_until

from onboard.domain.job import JobState
from onboard.registry.events import EventRepository
from onboard.registry.jobs import JobRepository
from onboard.registry.services import Services
from onboard.registry.versions import VersionRepository


def in_stage(services: Services, job: str, stage: str) -> Callable[[], bool]:
    def look() -> bool:
        with services.database.read() as session:
            events = EventRepository(session).list(job)
        return any(event.kind == "note" and event.message.startswith(stage) for event in events)

    return look


def marks_of(place: Place, task: str) -> dict[int, bool]:
    """Whether each version is provisional, by its number."""
    with place.services() as services, services.database.read() as session:
        return {version.version: version.provisional for version in VersionRepository(session).list(task=task)}


def test_a_job_whose_worker_was_killed_between_its_two_versions_goes_on_with_the_next_worker(elsewhere: Place) -> None:
    rows = elsewhere.write("mood.jsonl", opinions(100))
    job = elsewhere.json("submit", "--dataset", rows, "--tune-hypernetwork", "never")["job"]
    with elsewhere.services() as services:
        wait_until(in_stage(services, job, "train"), 120, "the training to begin")
    (worker,) = elsewhere.workers()
    kill_tree(worker.pid)
    assert marks_of(elsewhere, "mood") == {1: True}
    with elsewhere.services() as services:
        assert state_of(services, job) is JobState.RUNNING
    second = elsewhere.run("submit", "--dataset", rows, "--task", "other", "--shots", "6", "--json")
    assert "started a worker" in second.stderr
    watched = elsewhere.run("jobs", "watch", job, "--json")
    assert watched.returncode == 0, watched.stderr
    assert "readout: resumed" in watched.stderr
    assert "probe: resumed" in watched.stderr
    assert watched.stderr.count("mood@v1 is published as provisional") == 1
    assert elsewhere.json("jobs", "show", job)["attempt"] == 2
    assert elsewhere.json("jobs", "watch", json.loads(second.stdout)["job"])["state"] == "succeeded"
    marks = marks_of(elsewhere, "mood")
    assert marks in ({1: False}, {1: True, 2: False})
    assert json.loads(watched.stdout)["version"] == max(marks)


def error_of(services: Services, job: str) -> dict[str, str] | None:
    with services.database.read() as session:
        return JobRepository(session).get(job).error


def state_of(services: Services, job: str) -> JobState:
    with services.database.read() as session:
        return JobRepository(session).get(job).state


@pytest.fixture
def small_disk(elsewhere: Place) -> Iterator[Path]:
    """A disk of one megabyte for the artifacts."""
    if os.geteuid() != 0:
        pytest.skip("only root can mount a small disk")
    disk = elsewhere.folder / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", disk], capture_output=True, check=False)
    if mounted.returncode != 0:
        pytest.skip(f"no small disk can be mounted here: {mounted.stderr.decode().strip()}")
    elsewhere.more["ONBOARD_ARTIFACT_URL"] = str(disk)
    try:
        yield disk
    finally:
        elsewhere.leave()
        subprocess.run(["umount", "-l", disk], check=True)


def fill(disk: Path) -> Path:
    """A file that leaves no byte."""
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as file:
        for size in (4096, 1):
            try:
                while True:
                    file.write(b"x" * size)
            except OSError:
                continue
    return filler


def whole_artifacts(disk: Path) -> int:
    """How many artifacts are stored; every file among them has to be whole."""
    stored = [path for path in (disk / "sha256").rglob("*") if path.is_file()]
    for path in stored:
        assert path.name == hashlib.sha256(path.read_bytes()).hexdigest(), f"{path} is half a file"
    return len(stored)


def test_a_full_disk_refuses_submissions_stops_jobs_and_hurts_nothing(elsewhere: Place, small_disk: Path) -> None:
    rows = elsewhere.write("mood.jsonl", opinions(16))
    filler = fill(small_disk)
    refused = elsewhere.run("submit", "--dataset", rows)
    assert refused.returncode == 5
    assert "No space left on device" in refused.stderr
    assert "space" in remedy_of(refused)
    assert elsewhere.json("jobs", "list") == {"jobs": []}
    filler.unlink()

    elsewhere.json("queue", "pause")
    job = elsewhere.json("submit", "--dataset", rows, "--fast")["job"]
    stored = whole_artifacts(small_disk)
    filler = fill(small_disk)
    elsewhere.json("queue", "resume")

    with elsewhere.services() as services:
        error = wait_until(lambda: error_of(services, job), 120, "the job to meet the full disk")
    assert error["code"] == "storage"
    assert "No space left on device" in error["message"]
    assert whole_artifacts(small_disk) == stored
    elsewhere.json("jobs", "cancel", job)
    filler.unlink()
    assert elsewhere.json("jobs", "retry", job)["state"] == "queued"
    assert elsewhere.json("jobs", "watch", job)["version"] == 1
    assert whole_artifacts(small_disk) > stored
