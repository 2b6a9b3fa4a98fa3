"""Many processes claim from one table: no job is lost, none is run twice, whatever leases run out."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter

from support.real_workers import TESTS
from support.registry_samples import register_sample_base, sample_spec

from onboard.domain.job import JobState
from onboard.registry.database import Database
from onboard.registry.events import EventRepository
from onboard.registry.jobs import JobRepository
from onboard.registry.versions import VersionRepository

JOBS = 40
PROCESSES = 4

# Claims and publishes until nothing is left. Every third attempt stalls until its lease has run out, then tries to
# publish all the same; every seventh is abandoned.
CLAIMER = """
import sys, time
from onboard.errors import FencedError
from onboard.registry.claims import ClaimRepository
from onboard.registry.database import Database
from onboard.registry.versions import VersionRepository
from support.registry_samples import sample_task, sample_version

name, url = sys.argv[1:]
database = Database(url)
turn = 0
while True:
    with database.write() as session:
        job = ClaimRepository(session).claim(name, ["default"], lease_seconds=0.3)
    if job is None:
        with database.read() as session:
            if not ClaimRepository(session).open(["default"]):
                break
        time.sleep(0.05)
        continue
    turn += 1
    if turn % 7 == 0:
        continue
    if turn % 3 == 0:
        time.sleep(0.5)
    try:
        with database.write() as session:
            VersionRepository(session).publish(
                sample_version("t", job=job.id), sample_task("t"), attempt=job.attempt, result={"by": name}
            )
        print("published", job.id, flush=True)
    except FencedError:
        print("fenced", job.id, flush=True)
"""


def test_processes_that_stall_and_vanish_publish_every_job_once(database: Database) -> None:
    register_sample_base(database)
    with database.write() as session:
        for _ in range(JOBS):
            JobRepository(session).add(sample_spec("t"), max_attempts=1000)
    claimers = [
        subprocess.Popen(
            [sys.executable, "-c", CLAIMER, f"w{number}", database.url], cwd=TESTS, stdout=subprocess.PIPE, text=True
        )
        for number in range(PROCESSES)
    ]
    said = [line.split() for claimer in claimers for line in claimer.communicate(timeout=60)[0].splitlines()]
    assert [claimer.returncode for claimer in claimers] == [0] * PROCESSES
    published = Counter(job for what, job in said if what == "published")
    with database.read() as session:
        jobs = JobRepository(session).list(limit=JOBS + 1)
        versions = VersionRepository(session).list(task="t")
        attempts = [
            [event.attempt for event in EventRepository(session).list(job.id) if event.message == JobState.RUNNING]
            for job in jobs
        ]
    assert {job.state for job in jobs} == {JobState.SUCCEEDED}
    assert published == Counter(job.id for job in jobs)
    assert [version.version for version in versions] == list(range(1, JOBS + 1))
    assert {version.job for version in versions} == {job.id for job in jobs}
    assert all(numbers == list(range(1, len(numbers) + 1)) for numbers in attempts)  # no attempt was given out twice
    assert any(len(numbers) > 1 for numbers in attempts)  # leases did run out
