"""Somebody who submits all the while, and asks again, with the same key, whenever no answer comes."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from bench.chaos.journal import Journal
from bench.harness.opinions import opinions
from onboard.data.read import Checked, ReadOptions, read_dataset
from onboard.domain.job import JobSpec
from onboard.errors import UnavailableError
from onboard.jobs.submit import Request, submit
from onboard.services import Services, open_services
from onboard.settings import Settings
from workers.doorbell import CeleryDoorbell

TASKS: Final = 12
_ROWS: Final = 8
_AGAIN_SECONDS: Final = 0.2


class Submitter(threading.Thread):
    """Submits jobs of a few tasks in turn, each with a seed of its own.

    Args:
        settings: with the proxy in the way.
        jobs: how many.
        ahead: told how many were accepted before each; it waits while this is false.
        name: what the idempotency keys begin with.
    """

    def __init__(
        self,
        settings: Settings,
        folder: Path,
        jobs: int,
        journal: Journal,
        ahead: Callable[[int], bool],
        name: str = "key",
    ) -> None:
        super().__init__(name=name, daemon=True)
        self._settings = settings
        self._folder = folder
        self._jobs = jobs
        self._journal = journal
        self._ahead = ahead
        self._over = threading.Event()
        self._unheard = False  # whether it is not known yet what became of the last one
        self.accepted: list[str] = []
        self.tried_again = 0
        self.error: BaseException | None = None

    def run(self) -> None:
        """Submit until all are accepted, or `stop` is called."""
        try:
            checked = datasets(self._folder)
            bell = CeleryDoorbell(self._settings)
            while not self.done and not self._over.is_set():
                number = len(self.accepted)
                if not self._unheard and not self._ahead(number):
                    self._over.wait(_AGAIN_SECONDS)
                    continue
                self._unheard = True
                job = self._submit(
                    bell,
                    Request(checked[number % TASKS], spec_of(self._settings.base, number), key=f"{self.name}-{number}"),
                )
                if job:
                    self.accepted.append(job)
                    self._unheard = False
        except BaseException as error:  # noqa: BLE001 - a thread's edge; whoever waits for it raises it
            self.error = error

    def enough(self) -> None:
        """Begin nothing more: what was accepted so far, and perhaps the present one, is all."""
        self._jobs = len(self.accepted)

    def stop(self) -> None:
        """Submit nothing more, and wait for the present one. Raises what went wrong."""
        self._over.set()
        self.join()
        if self.error is not None:
            raise self.error

    @property
    def done(self) -> bool:
        """Whether all jobs were accepted."""
        return len(self.accepted) >= self._jobs and not self._unheard

    def _submit(self, bell: CeleryDoorbell, request: Request) -> str | None:
        """The job's id; None when it was not heard whether it was accepted."""
        services: Services | None = None
        try:
            services = open_services(self._settings)
            job, _ = submit(services, bell, request)
        except UnavailableError as error:
            self.tried_again += 1
            self._journal.write("not accepted", key=request.key, message=error.message)
            self._over.wait(_AGAIN_SECONDS)
            return None
        finally:
            if services is not None:
                services.close()
        return job.id


def spec_of(base: str, number: int) -> JobSpec:
    """What job `number` asks for."""
    return JobSpec(task=f"task-{number % TASKS}", dataset="", base=base, seed=number)


def datasets(folder: Path) -> list[Checked]:
    """The rows of every task, read from files in `folder`."""
    return [_dataset(folder / f"task-{number}.jsonl", number) for number in range(TASKS)]


def _dataset(path: Path, number: int) -> Checked:
    rows: list[dict[str, Any]] = opinions(_ROWS, start=_ROWS * number)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return read_dataset(path, ReadOptions(suspects=False))
