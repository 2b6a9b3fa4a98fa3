"""One claiming process of bench/queue: `python -m bench.queue.loop URL NAME JOBS`.

It says "ready", waits for a line, claims and ends so many jobs that do nothing, and prints the milliseconds of each.
"""

from __future__ import annotations

import json
import sys
import time

from onboard.domain.job import JobState
from onboard.registry.claims import ClaimRepository
from onboard.registry.database import Database


def main(url: str, name: str, jobs: int) -> None:
    """Claim and end `jobs` jobs as fast as the others let it."""
    database, took = Database(url), []
    with database.read() as session:
        ClaimRepository(session).open(["default"])
    print("ready", flush=True)
    sys.stdin.readline()
    for _ in range(jobs):
        started = time.perf_counter()
        with database.write() as session:
            job = ClaimRepository(session).claim(name, ["default"], pid=1)
        assert job is not None, "there are too few jobs"
        with database.write() as session:
            ClaimRepository(session).finish(job.id, job.attempt, JobState.SUCCEEDED, result={"state": "succeeded"})
        took.append(1000 * (time.perf_counter() - started))
    database.dispose()
    print(json.dumps(took))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
