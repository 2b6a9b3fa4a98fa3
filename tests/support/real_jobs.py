"""Jobs with a real model, the tiny one: submitted, claimed and run in the test's own process."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sqlalchemy import update

from bench.harness.opinions import opinions
from onboard.bases import Base
from onboard.data.read import ReadOptions, read_dataset
from onboard.domain.job import Job, JobSpec, JobState
from onboard.domain.progress import Progress
from onboard.domain.task import EmbeddingVersion
from onboard.jobs.submit import JobRequest, submit
from onboard.pipeline import run as pipeline
from onboard.registry.claims import ClaimRepository
from onboard.registry.jobs import JobRepository
from onboard.registry.services import Services
from onboard.registry.tables import JobRow
from onboard.registry.versions import VersionRepository
from onboard.testing import MemoryDoorbell, RecordedProgress

__all__ = ["DOCUMENT", "STAGES", "Desk", "HookedProgress", "opinions", "write_rows"]

WORKER = "test"
DOCUMENT = {  # the keys of a result document, which the README promises
    "job", "state", "task", "version", "embedding_digest", "hypernetwork_version", "init", "metrics", "guard",
    "seconds",
}  # fmt: skip
STAGES = ["check", "probe", "train", "evaluate"]  # what runs before publishing

Rows = Sequence[dict[str, Any]]


def write_rows(path: Path, rows: Rows) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


@dataclass
class Desk:
    """Submits to a home and works there."""

    services: Services
    folder: Path

    def submit(
        self,
        rows: Rows,
        task: str = "mood",
        *,
        test: Rows | None = None,
        options: dict[str, Any] | None = None,
        settings: Mapping[str, Any] | None = None,
        key: str | None = None,
        **spec: Any,
    ) -> Job:
        """`spec` has fields of a job's spec, and what stands among its options: readout, fast, probe."""
        files: dict[str, Any] = {"test": write_rows(self.folder / f"{task}-test.jsonl", test)} if test else {}
        checked = read_dataset(
            write_rows(self.folder / f"{task}.jsonl", rows), ReadOptions(suspects=False, **files, **(options or {}))
        )
        of_method = [f"{name}={value}" for name, value in (settings or {}).items()]
        among = {name: spec.pop(name) for name in ("readout", "fast", "probe") if name in spec}
        asked = JobSpec(
            task=task, dataset="", base=self.services.settings.base,
            options=among | ({"method_setting": of_method} if of_method else {}),
            **{"tune_hypernetwork": "never", **spec},
        )  # fmt: skip
        return submit(self.services, MemoryDoorbell(), JobRequest(checked, asked, key=key))[0]

    def claim(self, pid: int = 1) -> Job:
        with self.services.database.write() as session:
            job = ClaimRepository(session).claim(WORKER, ["default"], pid=pid)
        assert job is not None
        return job

    def keep(self, job: Job) -> None:
        """Extend its lease, so that no other worker of the test takes it, however slow the machine is."""
        with self.services.database.write() as session:
            ClaimRepository(session).heartbeat(job.id, job.attempt, 3600)

    def submit_and_claim(self, rows: Rows, task: str = "mood", **more: Any) -> Job:
        self.submit(rows, task, **more)
        return self.claim()

    def end(self, job_id: str, state: JobState) -> None:
        """As a worker ends the attempt that it stopped."""
        with self.services.database.write() as session:
            ClaimRepository(session).finish(job_id, self.job(job_id).attempt, state)

    def lose(self, pid: int = 1) -> None:
        """The process that ran the job is gone: its lease ends, and another attempt may claim it."""
        with self.services.database.write() as session:
            ClaimRepository(session).expire(WORKER, pid)

    def run(self, job: Job, progress: Progress | None = None) -> Job:
        """Run a claimed job; the job afterwards."""
        pipeline.run(job, self.services, progress or RecordedProgress())
        return self.job(job.id)

    def learn(self, rows: Rows, task: str = "mood", **more: Any) -> dict[str, Any]:
        """Submit, claim, run: the result document."""
        self.submit(rows, task, **more)
        result = self.run(self.claim()).result
        assert result is not None
        return result

    def learn_on(self, base: Base, rows: Rows, task: str, **more: Any) -> dict[str, Any]:
        """The same on another base of this home."""
        settings = self.services.settings.model_copy(update={"base": str(base.folder)})
        return Desk(replace(self.services, settings=settings), self.folder).learn(rows, task, **more)

    def let_be_due(self, job_id: str) -> None:
        """A job that was put off waits no longer."""
        with self.services.database.write() as session:
            session.execute(update(JobRow).where(JobRow.id == job_id).values(not_before_at=0))

    def job(self, job_id: str) -> Job:
        with self.services.database.read() as session:
            return JobRepository(session).get(job_id)

    def jobs(self) -> Sequence[Job]:
        with self.services.database.read() as session:
            return JobRepository(session).list()

    def version(self, reference: str) -> EmbeddingVersion:
        with self.services.database.read() as session:
            return VersionRepository(session).resolve(reference)

    def versions(self, task: str) -> Sequence[EmbeddingVersion]:
        with self.services.database.read() as session:
            return VersionRepository(session).list(task=task)


class HookedProgress(RecordedProgress):
    """Keeps what it is told, and calls `hook(what, name)` after it: "started", "finished" or "note"."""

    def __init__(self, hook: Callable[[str, str], None]) -> None:
        super().__init__()
        self._hook = hook

    def stage_started(self, stage: Any) -> None:
        super().stage_started(stage)
        self._hook("started", stage.value)

    def stage_finished(self, stage: Any, seconds: float, numbers: dict[str, Any]) -> None:
        super().stage_finished(stage, seconds, numbers)
        self._hook("finished", stage.value)

    def note(self, message: str, **numbers: Any) -> None:
        super().note(message, **numbers)
        self._hook("note", message)


class CrashError(Exception):
    """The worker's process ends here."""


def crash_after(stage: str) -> HookedProgress:
    """Of an attempt that ends when this stage has finished."""

    def crash(what: str, name: str) -> None:
        if (what, name) == ("finished", stage):
            raise CrashError

    return HookedProgress(crash)
