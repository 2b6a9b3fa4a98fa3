"""A deployment with real workers: processes started as an operator would, running a pipeline without a model."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from onboard.broker.doorbell import CeleryDoorbell
from onboard.domain.job import Job, JobState
from onboard.domain.task import EmbeddingVersion
from onboard.domain.worker import WorkerRecord
from onboard.jobs.doorbell import ring_or_warn
from onboard.registry.jobs import JobRepository
from onboard.registry.services import Services, open_services
from onboard.registry.versions import VersionRepository
from onboard.registry.workers import WorkerRepository
from onboard.settings import Settings
from support.real_services import wait_until
from support.registry_samples import register_sample_base, sample_spec

TESTS = Path(__file__).parent.parent
QUICK = {
    "lease_seconds": 3.0, "heartbeat_seconds": 0.5, "cancel_seconds": 4.0, "reconcile_seconds": 0.5,
    "drain_seconds": 20.0,
}  # fmt: skip


@dataclass
class RealWorker:
    """A worker's parent process."""

    name: str
    process: subprocess.Popen[bytes]
    log: Path

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def exit_code(self, seconds: float = 60.0) -> int:
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired as error:
            raise AssertionError(f"the worker did not end:\n{self.log.read_text()}") from error


@dataclass
class Deployment:
    """Registry, store, broker and the workers that a test starts; a context manager that ends them."""

    settings: Settings
    folder: Path
    workers: list[RealWorker] = field(default_factory=list)

    def __enter__(self) -> Self:
        self.services: Services = open_services(self.settings)
        register_sample_base(self.services.database)
        return self

    def __exit__(self, *_error: object) -> None:
        for worker in self.workers:
            worker.process.kill()
            worker.process.wait()
        self.services.close()

    def start_worker(
        self,
        *,
        modules: Path = TESTS,
        alive_file: Path | None = None,
        pipeline: str = "support.fake_pipelines",
        **timings: float,
    ) -> RealWorker:
        """Start a worker and wait until its row says that it runs; `modules` is looked into before the tests' own."""
        name = f"w{len(self.workers) + 1}"
        command = [sys.executable, "-m", "workers", "--settings-from-stdin", "--name", name]
        command += ["--pipeline", pipeline]
        if alive_file is not None:
            command += ["--alive-file", str(alive_file)]
        for key, value in {**QUICK, **timings}.items():
            command += [f"--{key.replace('_', '-')}", str(value)]
        log = self.folder / f"{name}.log"
        with log.open("wb") as file:
            process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=file, stderr=file, cwd=self.folder,
                env={**os.environ, "PYTHONPATH": f"{modules}:{TESTS}"},
            )  # fmt: skip
        assert process.stdin is not None
        with process.stdin as pipe:
            pipe.write(json.dumps(self.settings.for_worker()).encode())
        worker = RealWorker(name, process, log)
        self.workers.append(worker)
        wait_until(lambda: name in [row.name for row in self.rows() if row.pid], what=f"{name}: {log.read_text()}")
        return worker

    def submit(self, *, ring: bool = True, time_limit_seconds: float | None = None, **options: object) -> Job:
        """Queue a job; `options` tell the fake pipeline what to do."""
        with self.services.database.write() as session:
            job, _ = JobRepository(session).add(sample_spec(**options), time_limit_seconds=time_limit_seconds)
        if ring:
            self.warning = ring_or_warn(CeleryDoorbell(self.settings), job.queue)
        return job

    def job(self, job: Job) -> Job:
        with self.services.database.read() as session:
            return JobRepository(session).get(job.id)

    def rows(self) -> list[WorkerRecord]:
        with self.services.database.read() as session:
            return list(WorkerRepository(session).list(include_stopped=True))

    def versions(self) -> list[EmbeddingVersion]:
        with self.services.database.read() as session:
            return list(VersionRepository(session).list(task="colours"))

    def running(self, job: Job) -> Job:
        """The job as soon as it runs."""
        return wait_until(
            lambda: (now := self.job(job)).state is JobState.RUNNING and now.stage and now, what="the job to run"
        )

    def finished(self, job: Job, seconds: float = 120.0) -> Job:
        """The job as soon as it has ended."""
        logs = "".join(worker.log.read_text() for worker in self.workers)
        return wait_until(
            lambda: (now := self.job(job)).state.finished and now, seconds, f"the job to end: {self.job(job)}\n{logs}"
        )
