"""How long a killed worker's job waits with the timings that people have, when nothing else is in the way."""

from __future__ import annotations

import random
import shutil
from pathlib import Path
from typing import Any, Final

from bench.chaos.fleet import Fleet, running
from bench.chaos.journal import Journal
from bench.chaos.place import PlaceName, open_place
from bench.chaos.prey import Hunter
from bench.chaos.reruns import AFTER_LEASE_SECONDS, reruns
from bench.chaos.submitter import Submitter
from bench.harness.services import wait_until
from onboard.domain.job import LEASE_SECONDS, Stage
from onboard.registry.claims import ClaimRepository
from onboard.registry.services import Services, open_services
from onboard.registry.workers import WorkerRepository

WANTED_SECONDS: Final = LEASE_SECONDS + AFTER_LEASE_SECONDS
_START_SECONDS: Final = 120.0
_JOBS: Final = 50  # one after another, until one is caught while it trains
_CLOCKS: Final = (0.0, 0.0)


def measure(name: PlaceName, times: int, folder: Path, base: Path) -> dict[str, Any]:
    """Kill a whole worker in the midst of a job, `times` times; another one is idle."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    journal = Journal(folder / "journal.jsonl")
    with open_place(name, folder, base) as place:
        services = open_services(place.direct)
        fleet = Fleet(place.direct, folder, journal, _CLOCKS)
        hunter = Hunter(fleet, services.database, journal, random.Random(0), aim_seconds=_START_SECONDS)
        try:
            with running(fleet):
                for number in range(times):
                    wait_until(lambda: _entered(services, fleet), _START_SECONDS, "two workers")
                    one_by_one = Submitter(
                        place.direct, folder, _JOBS, journal, lambda _: not _open(services), f"lease-{number}"
                    )
                    _kill_once(hunter, journal, one_by_one)
                    wait_until(lambda: not _open(services), 2 * _START_SECONDS, "the jobs' end")
            seconds = reruns(services, journal, LEASE_SECONDS)["both"]
        finally:
            services.close()
    return {"place": name, "lease_seconds": LEASE_SECONDS, "wanted_seconds": WANTED_SECONDS, **seconds}


def _kill_once(hunter: Hunter, journal: Journal, submitter: Submitter) -> None:
    submitter.start()
    hunter.kill("both", Stage.TRAIN)
    submitter.stop()
    assert journal.of("kill")[-1]["job"], "no job ran"


def _open(services: Services) -> int:
    with services.database.read() as session:
        return ClaimRepository(session).open(["default"])


def _entered(services: Services, fleet: Fleet) -> bool:
    """Both are there; the one that has just been started again has time to load while the lease runs out."""
    fleet.tend()
    with services.database.read() as session:
        entered = {worker.name for worker in WorkerRepository(session).list()}
    alive = fleet.alive()
    return len(alive) == len(_CLOCKS) and all(worker.name in entered for worker in alive)
