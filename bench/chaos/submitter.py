"""Somebody who submits all the while, and asks again, with the same key, whenever no answer comes."""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, Final

from bench.chaos.journal import Journal
from bench.chaos.poison import HANG_LIMIT_SECONDS, PREFIX, is_poison
from bench.harness.opinions import opinions
from onboard.broker.doorbell import CeleryDoorbell
from onboard.data.read import Checked, ReadOptions, read_dataset
from onboard.domain.job import JobSpec
from onboard.errors import UnavailableError
from onboard.jobs.submit import JobRequest, submit
from onboard.registry.services import Services, open_services
from onboard.settings import Settings

TASKS: Final = 12
_ROWS: Final = 8
_AGAIN_SECONDS: Final = 0.2


class Submitter(threading.Thread):
    """Submits jobs of a few tasks in turn, each with its own seed.

    Args:
        settings: with the proxy in the way.
        jobs: how many.
        ahead: told how many were accepted before each; it waits while this is false.
        name: what the idempotency keys begin with.
        poison: what else is to be submitted, as soon as it stands there.

    Attributes:
        accepted: ids of all jobs.
    """

    def __init__(
        self,
        settings: Settings,
        folder: Path,
        jobs: int,
        journal: Journal,
        ahead: Callable[[int], bool],
        name: str = "key",
        poison: SimpleQueue[str] | None = None,
    ) -> None:
        super().__init__(name=name, daemon=True)
        self._settings = settings
        self._folder = folder
        self._jobs = jobs
        self._journal = journal
        self._ahead = ahead
        self._over = threading.Event()
        self._poison = SimpleQueue[str]() if poison is None else poison
        self._asked: JobRequest | None = None  # what it is not known of yet its result
        self._number = 0  # of jobs that are no poison
        self.accepted: list[str] = []
        self.tried_again = 0
        self.error: BaseException | None = None

    def run(self) -> None:
        """Submit until `stop` is called."""
        try:
            checked = datasets(self._folder)
            bell = CeleryDoorbell(self._settings)
            while not self._over.is_set():
                if self._asked is None and not self._next(checked):
                    self._over.wait(_AGAIN_SECONDS)
                    continue
                assert self._asked is not None
                job = self._submit(bell, self._asked)
                if job:
                    self.accepted.append(job)
                    self._number += not is_poison(self._asked.spec.task)
                    self._asked = None
        except BaseException as error:  # noqa: BLE001 - a thread's edge; whoever waits for it raises it
            self.error = error

    def enough(self) -> None:
        """Begin nothing more: the accepted jobs so far, and perhaps the present one, is all."""
        self._jobs = self._number

    def stop(self) -> None:
        """Submit nothing more, and wait for the present one. Raises what went wrong."""
        self._over.set()
        self.join()
        if self.error is not None:
            raise self.error

    @property
    def done(self) -> bool:
        """Whether all jobs were accepted."""
        return self._number >= self._jobs and self._asked is None and self._poison.empty()

    def _next(self, checked: list[Checked]) -> bool:
        """Whether there is anything to submit now."""
        with suppress(Empty):
            what = self._poison.get_nowait()
            spec = JobSpec(task=f"{PREFIX}{what}", dataset="", base=self._settings.base)
            limit = HANG_LIMIT_SECONDS if what == "hangs" else None
            self._asked = JobRequest(checked[0], spec, key=uuid.uuid4().hex, time_limit_seconds=limit)
            return True
        if self._number < self._jobs and self._ahead(len(self.accepted)):
            spec = spec_of(self._settings.base, self._number)
            self._asked = JobRequest(checked[self._number % TASKS], spec, key=f"{self.name}-{self._number}")
        return self._asked is not None

    def _submit(self, bell: CeleryDoorbell, request: JobRequest) -> str | None:
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
    """The request of job `number`."""
    return JobSpec(task=f"task-{number % TASKS}", dataset="", base=base, seed=number)


def datasets(folder: Path) -> list[Checked]:
    """The rows of every task, read from files in `folder`."""
    return [_dataset(folder / f"task-{number}.jsonl", number) for number in range(TASKS)]


def _dataset(path: Path, number: int) -> Checked:
    rows: list[dict[str, Any]] = opinions(_ROWS, start=_ROWS * number)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return read_dataset(path, ReadOptions(suspects=False))
