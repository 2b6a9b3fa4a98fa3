"""`onboard tasks delete --unlearn`, killed before a statement of SQL that is drawn from a seed, again and again.

A task, one that started from it and one that started from that are learned by real workers. Whatever moment it is
killed at, nothing may have changed; the last time it is accepted, and workers, killed meanwhile too, rebuild what
descends.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from sqlalchemy import delete, event, func, select

from bench.chaos.checker import check
from bench.chaos.fleet import Fleet, running
from bench.chaos.journal import Journal
from bench.chaos.place import PlaceName, open_place
from bench.chaos.prey import Hunter
from bench.chaos.run import PIPELINE, TIMINGS
from bench.chaos.submitter import datasets
from bench.harness.programs import in_a_process
from bench.harness.services import wait_until
from onboard.broker.doorbell import CeleryDoorbell
from onboard.domain.job import JobSpec, JobState, Stage
from onboard.errors import UnavailableError
from onboard.jobs.submit import JobRequest, submit
from onboard.registry.deleting import DeletingRepository
from onboard.registry.descent import DescentRepository
from onboard.registry.jobs import JobRepository
from onboard.registry.services import Services, open_services
from onboard.registry.tables import EmbeddingVersionRow, JobRow, LeaseRow
from onboard.registry.versions import VersionRepository
from onboard.settings import Settings
from onboard.versions.delete import delete_task

GONE: Final = "gone"
LEARNED: Final = ((GONE, "random"), ("child", GONE), ("grandchild", "child"))
_CLOCKS: Final = (0.0, 3600.0)
_SECONDS: Final = 240.0
_AFTER_COMMIT: Final = 8  # statements of the rehearsal that give its right back; with some to spare
_KINDS: Final = ("artifact", "orphan", "lease", "claimed")  # of violations; numbers and jobs go with the task here

Look = Callable[[Services], bool]


def measure(name: PlaceName, times: int, seed: int, folder: Path, base: Path) -> dict[str, Any]:
    """Kill it so often, let it through, and look whether anything of the task is left, or anything else is gone."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    journal, rng = Journal(folder / "journal.jsonl"), random.Random(f"{seed} {name}")
    with open_place(name, folder, base) as place, closing(open_services(place.direct)) as services:
        fleet = Fleet(place.direct, folder, journal, _CLOCKS, TIMINGS, PIPELINE)
        with running(fleet):
            _learn(services, place.direct, folder, fleet)
        before = _state(services)
        statements = _statements(place.direct, folder)  # of a rehearsal, which ends where it would be committed
        faults = []
        for _ in range(times):
            faults += _killed(services, place.direct, rng.randrange(statements - _AFTER_COMMIT), before)
            _let_lease_run_out(services)
        _, status = in_a_process(lambda: _delete(place.direct, -1))
        faults += [] if status == 0 else [f"at last it ended with {status}"]
        with running(fleet):
            killed = _rebuilt(services, fleet, Hunter(fleet, services.database, journal, rng, fleet.tend))
        faults += _left(services)
    return {
        "place": name,
        "seed": seed,
        "command": f"python -m bench.chaos --unlearn {times} --place {name} --seed {seed}",
        "kills": times,
        "statements": statements,
        "kills_of_rebuilding_workers": killed,
        "faults": faults,
    }


def _learn(services: Services, settings: Settings, folder: Path, fleet: Fleet) -> None:
    checked, bell = datasets(folder), CeleryDoorbell(settings)
    for number, (task, init) in enumerate(LEARNED):
        spec = JobSpec(task, "", init=init, tune_hypernetwork="never", base=settings.base, seed=number)
        spec = replace(spec, options={"readout": "never"})  # a readout alone descends from no task
        submit(services, bell, JobRequest(checked[number], spec))
        _wait(services, fleet, lambda services: not _open(services), f"{task} to be learned")


def _statements(settings: Settings, folder: Path) -> int:
    """How many statements it takes."""
    counted = folder / "statements"
    in_a_process(lambda: counted.write_text(str(_delete(settings, -1, dry_run=True)), encoding="utf-8"))
    return int(counted.read_text(encoding="utf-8"))


def _killed(services: Services, settings: Settings, place: int, before: dict[str, int]) -> list[str]:
    """The problems after a kill in the midst of it: nothing may have changed."""
    _, status = in_a_process(lambda: _delete(settings, place))
    faults = [] if os.WIFSIGNALED(status) else [f"it was not killed at statement {place}, but ended with {status}"]
    after = _state(services)
    return [
        *faults,
        *([] if after == before else [f"after statement {place} there is {after}, before it was {before}"]),
    ]


def _let_lease_run_out(services: Services) -> None:
    """That of the killed one: the next one would wait for five minutes."""
    with services.database.write() as session:
        session.execute(delete(LeaseRow))


def _delete(settings: Settings, place: int, *, dry_run: bool = False) -> int:
    """Delete, or be killed before that statement. Returns how many there were."""
    done = [0]

    def reached(*_: Any) -> None:
        if done[0] == place:
            os.kill(os.getpid(), signal.SIGKILL)
        done[0] += 1

    with closing(open_services(settings)) as services:
        for what in ("before_cursor_execute", "commit"):
            event.listen(services.database.engine, what, reached)
        while True:
            try:
                delete_task(services, GONE, unlearning=True, dry_run=dry_run)
                return done[0]
            except UnavailableError:
                continue


def _state(services: Services) -> dict[str, int]:
    """How much there is of everything that an unlearning changes."""
    with services.database.read() as session:
        return {
            "task": int(DeletingRepository(session).has_content(GONE)),
            "versions": session.scalars(select(func.count()).select_from(EmbeddingVersionRow)).one(),
            "marked": session.scalars(
                select(func.count()).select_from(EmbeddingVersionRow).where(EmbeddingVersionRow.unlearning.is_not(None))
            ).one(),
            "jobs": session.scalars(select(func.count()).select_from(JobRow)).one(),
        }


def _rebuilt(services: Services, fleet: Fleet, hunter: Hunter) -> int:
    """Wait until what descends is rebuilt, and kill a worker that does it; returns how many were."""
    killed = int(hunter.kill("both", Stage.TRAIN)) if _open(services) else 0
    _wait(services, fleet, lambda services: not _open(services), "the rebuilding")
    return killed


def _left(services: Services) -> list[str]:
    with services.database.read() as session:
        descendants = DescentRepository(session)
        left = descendants.of(descendants.root(GONE))
        latest = [VersionRepository(session).resolve(task) for task, _ in LEARNED[1:]]
        failed = [job.id for job in JobRepository(session).list() if job.state is not JobState.SUCCEEDED]
        jobs = list(session.scalars(select(JobRow.id)))
    holds_by_fault = {
        "the task is there": _state(services)["task"] == 0,
        f"still descend from it: {sorted(left.versions)}": not left.versions,
        f"jobs did not succeed: {failed}": not failed,
        "what descended was not rebuilt": all(version.version > 1 for version in latest),
    }
    faults = [fault for fault, holds in holds_by_fault.items() if not holds]
    return faults + [wrong.what for wrong in check(services, jobs).violations if wrong.kind in _KINDS]


def _wait(services: Services, fleet: Fleet, look: Look, what: str) -> None:
    def turn() -> bool:
        fleet.tend()
        return look(services)

    wait_until(turn, _SECONDS, what)


def _open(services: Services) -> bool:
    """Whether a job waits or runs."""
    with services.database.read() as session:
        return bool(JobRepository(session).list(states=[JobState.QUEUED, JobState.RUNNING]))
