"""The cost of an idle worker: CPU seconds and memory of its parent and its child, on both sizes of a deployment.

python -m bench.idle [--seconds 30] [--output bench/results/idle.json]

CPU seconds are the processes' own, so that other load on the machine hardly disturbs them. PostgreSQL and Redis are
started as the tests start them; without their binaries that half is left out, and said to be.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import psutil

from bench.harness.programs import ended_in_order, resident, start_worker
from bench.harness.report import as_json, made_by, write
from bench.harness.services import PostgresServer, RedisServer, missing
from onboard.registry.database import Database
from onboard.registry.schema import upgrade
from onboard.registry.services import open_services
from onboard.registry.workers import WorkerRepository
from onboard.settings import Settings

_START_SECONDS: Final = 600.0
_QUIET_SECONDS: Final = 5.0
_LOOKS: Final = 10  # within them
_LOADED_BYTES: Final = 150 * 2**20  # a child with torch in it
_WANTED_SHARE: Final = 0.01


def main() -> int:
    """Measure and print; exit 1 when an idle worker takes 1% of a core or more."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--output", type=Path)
    asked = parser.parse_args()
    deployments: dict[str, Any] = {}
    with ended_in_order(), tempfile.TemporaryDirectory() as folder:
        deployments["sqlite + filesystem"] = measure(Settings(home=Path(folder) / "home"), asked.seconds)
        with grown_up(Path(folder)) as settings:
            grown = measure(settings, asked.seconds) if settings else "skipped: not installed"
            deployments["postgresql + redis"] = grown
    measured = [deployment for deployment in deployments.values() if isinstance(deployment, dict)]
    quiet = all(deployment["share_of_a_core"] < _WANTED_SHARE for deployment in measured)
    document = {
        **made_by("python -m bench.idle"), "seconds": asked.seconds, "wanted": f"share_of_a_core < {_WANTED_SHARE}",
        "kept": quiet, "deployments": deployments,
    }  # fmt: skip
    print(as_json(document))
    write(document, asked.output)
    return 0 if quiet else 1


@contextmanager
def grown_up(folder: Path) -> Iterator[Settings | None]:
    """Settings of a PostgreSQL and a Redis that run meanwhile; None where they are not installed."""
    if missing("postgres") or missing("redis-server"):
        yield None
        return
    with PostgresServer() as postgres, RedisServer() as redis:
        url = postgres.create("idle")
        upgrade(url)
        yield Settings(home=folder / "grown", database_url=url, broker_url=redis.url)


def measure(settings: Settings, seconds: float) -> dict[str, Any]:
    """Start a worker as an operator would, wait until it idles, and watch its processes for `seconds`."""
    services = open_services(settings)
    process = start_worker(settings, "idle", "--device", "cpu")
    try:
        parent = psutil.Process(process.pid)
        _until_idle(services.database, parent)
        family = {"parent": parent, "child": max(parent.children(recursive=True), key=resident)}
        before = {name: _cpu_seconds(member) for name, member in family.items()}
        time.sleep(seconds)
        used = {name: round(_cpu_seconds(member) - before[name], 3) for name, member in family.items()}
        return {
            "cpu_seconds": used,
            "share_of_a_core": round(sum(used.values()) / seconds, 5),
            "resident_bytes": {name: resident(member) for name, member in family.items()},
        }
    finally:
        process.terminate()
        process.wait(60)
        services.close()


def _until_idle(database: Database, parent: psutil.Process) -> None:
    """The worker has entered, its child has loaded the base, and nobody has computed for some seconds."""
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline:
        quiet = _is_quiet(parent)
        loaded = any(resident(child) > _LOADED_BYTES for child in parent.children(recursive=True))
        with database.read() as session:
            entered = bool(WorkerRepository(session).list())
        if entered and loaded and quiet:
            return
    raise TimeoutError(f"the worker was not idle after {_START_SECONDS} s")


def _is_quiet(parent: psutil.Process) -> bool:
    """It computes nothing, nor does it wait for a core that others have."""
    before = _family_seconds(parent)
    wants_a_core = 0
    for _ in range(_LOOKS):
        time.sleep(_QUIET_SECONDS / _LOOKS)
        family = (parent, *parent.children(recursive=True))
        wants_a_core += any(process.status() == psutil.STATUS_RUNNING for process in family)
    return _family_seconds(parent) - before < 0.1 and wants_a_core <= _LOOKS // 2


def _family_seconds(parent: psutil.Process) -> float:
    return sum(_cpu_seconds(process) for process in (parent, *parent.children(recursive=True)))


def _cpu_seconds(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


if __name__ == "__main__":
    sys.exit(main())
