"""Use case: what operators watch: queues, workers, open jobs, why a job waits, and how far a running one is."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from sqlalchemy.orm import Session

from onboard.contract.access import QuotaUse
from onboard.contract.operations import (
    OpenJobs,
    QueuedDocument,
    QueueDocument,
    QueueList,
    RunningDocument,
    WorkerDocument,
    WorkerList,
)
from onboard.contract.overview import EndedInHour, FailureGroup
from onboard.domain.failures import grouped
from onboard.domain.figures import Ended
from onboard.domain.forecast import starts_in
from onboard.domain.job import Job, JobState
from onboard.domain.moment import to_iso
from onboard.domain.release import release_of
from onboard.domain.running import RunningJob
from onboard.domain.task import EmbeddingVersion
from onboard.domain.waiting import NextAttempt, Waiting
from onboard.domain.worker import QueueStatus, WorkerRecord, WorkerState
from onboard.errors import SlotTakenError
from onboard.jobs.time_left import running_jobs
from onboard.registry.clock import read_clock
from onboard.registry.database import Database
from onboard.registry.events import EventRepository
from onboard.registry.job_figures import JobFigures
from onboard.registry.quotas import QuotaRepository
from onboard.registry.versions import VersionRepository
from onboard.registry.workers import QueueRepository, WorkerRepository

_MOST_VERSIONS: Final = 8  # newest versions that are shown
_LATELY_SECONDS: Final = 10.0  # maximum age of figures of a day or an hour


@dataclass(frozen=True, slots=True)
class ServiceSeen:
    """The whole service at one moment of the database's clock.

    Args:
        failures: jobs that failed or died within a day, grouped by error, latest first.
        hours: jobs that ended in each hour of the last day, oldest first.
        versions: the latest published versions, newest first.
    """

    queues: QueueList
    workers: WorkerList
    jobs: OpenJobs
    failures: Sequence[FailureGroup]
    hours: Sequence[EndedInHour]
    versions: Sequence[EmbeddingVersion]


def queues(database: Database) -> QueueList:
    """Return all queues with open jobs, live workers or recent jobs, all that were ever paused, and the default."""
    with database.snapshot() as session:
        return _Moment(session).queues()


def workers(database: Database) -> WorkerList:
    """Return all workers that have not signed off, with their current jobs."""
    with database.snapshot() as session:
        return _Moment(session).workers()


def open_jobs(database: Database, most: int) -> OpenJobs:
    """Return all running jobs and the `most` most urgent waiting ones."""
    with database.snapshot() as session:
        return _Moment(session).open_jobs(most)


class Lately:
    """Cache of recently ended jobs; refreshed after another job has ended, or after some seconds."""

    def __init__(self) -> None:
        self._known: tuple[dict[str, Ended], float] = {}, 0.0
        self.hours: Sequence[EndedInHour] = ()
        self.versions: Sequence[EmbeddingVersion] = ()
        self._newest: float | None = None
        self._read_at = -math.inf

    def read(self, session: Session, now: float) -> tuple[dict[str, Ended], float]:
        """See `JobFigures.ended`."""
        figures = JobFigures(session)
        newest = figures.newest_end()
        if newest != self._newest or now - self._read_at >= _LATELY_SECONDS:
            self._known, self._newest, self._read_at = figures.ended(now), newest, now
            self.hours, self.versions = figures.by_hour(now), _newest_versions(session, figures)
        return self._known


def service(database: Database, most: int, lately: Lately) -> ServiceSeen:
    """Return all of these, with the `most` most urgent waiting jobs and recent failures."""
    with database.snapshot() as session:
        moment = _Moment(session, lately)
        failed = list(map(FailureGroup.of_jobs, grouped(JobFigures(session).failed(moment.now))))
        queues = moment.queues()  # reads the ended jobs
        workers, jobs = moment.workers(), moment.open_jobs(most)
        return ServiceSeen(queues, workers, jobs, failed, lately.hours, lately.versions)


def pulse(database: Database) -> str:
    """Return text that changes with every event of a job, worker or queue, but not with heartbeats."""
    with database.glance() as session:  # of no common snapshot: what changes in between is seen the next time
        workers = sorted(
            (worker.name, worker.shown_state, worker.job or "") for worker in WorkerRepository(session).list()
        )
        paused = sorted(QueueRepository(session).paused())
        return repr((EventRepository(session).newest(), workers, paused))


def running_job(database: Database, job: Job) -> RunningJob | None:
    """Return the worker and progress of `job`; None unless it is running."""
    if job.state.finished:
        return None
    with database.snapshot() as session:
        records = WorkerRepository(session).list(include_stopped=True)
        jobs = running_jobs(session, read_clock(session), records)
    return next((running for running in jobs if running.attempt.job.id == job.id), None)


def waiting(database: Database, job: Job) -> Waiting | None:
    """Return why `job` waits; None unless it is queued, or lost its worker and waits for another."""
    if job.state.finished:
        return None
    with database.snapshot() as session:
        now = read_clock(session)
        lost = job.lease_expires_at is not None and job.lease_expires_at <= now
        if job.state is JobState.RUNNING and not lost:
            return None
        figures = JobFigures(session)
        present = WorkerRepository(session).list()
        serving = [worker for worker in present if worker.takes_jobs and job.queue in worker.queues]
        faulty = next((worker for worker in present if worker.faulty and job.queue in worker.queues), None)
        able = [worker for worker in serving if release_of(worker.facts) >= (job.needs_release or 0)]
        paused = job.queue in QueueRepository(session).paused()
        ahead = figures.ahead(job, now)
        retry = _retry(job, now)
        starts = None if paused or retry else _starts_in(session, now, job.queue, ahead, able)
    return Waiting(
        queue=job.queue,
        ahead=ahead,
        paused=paused,
        live_workers=len(able),
        outdated_workers=len(serving) - len(able),
        retry=retry,
        starts_in_seconds=starts,
        lost_worker=job.worker if lost else None,
        faulty_worker=None if faulty is None or faulty.trouble is None else (faulty.name, faulty.trouble),
    )


class _Moment:
    """One snapshot; data that several views need is read once."""

    def __init__(self, session: Session, lately: Lately | None = None) -> None:
        self._session = session
        self._lately = lately or Lately()
        self.now = read_clock(session)

    @cached_property
    def _known(self) -> Sequence[WorkerRecord]:
        return WorkerRepository(self._session).list(include_stopped=True)

    @cached_property
    def _present(self) -> Sequence[WorkerRecord]:
        return [worker for worker in self._known if worker.state is not WorkerState.STOPPED]

    @cached_property
    def _running(self) -> Sequence[RunningJob]:
        return running_jobs(self._session, self.now, self._known)

    @cached_property
    def _statuses(self) -> Sequence[QueueStatus]:
        return QueueRepository(self._session).list()

    def queues(self) -> QueueList:
        statuses, present = {status.name: status for status in self._statuses}, self._present
        recent, window_seconds = self._lately.read(self._session, self.now)
        served = {queue for worker in present if worker.live for queue in worker.queues}
        documents = [
            QueueDocument.of_status(
                statuses.get(name, QueueStatus(name, paused=False)),
                sum(worker.takes_jobs and name in worker.queues for worker in present),
                recent.get(name) or Ended.nothing(window_seconds),
            )
            for name in sorted({*statuses, *served, *recent})
        ]
        owners = tuple(map(QuotaUse.of, QuotaRepository(self._session).list()))
        return QueueList(at=to_iso(self.now), queues=tuple(documents), owners=owners)

    def workers(self) -> WorkerList:
        # Only jobs that the worker still holds: after its lease, another worker may take a job.
        jobs = {running.attempt.job.id: running for running in self._running}
        workers = [WorkerDocument.of_record(record, jobs.get(record.job or "")) for record in self._present]
        return WorkerList(at=to_iso(self.now), workers=tuple(workers))

    def open_jobs(self, most: int) -> OpenJobs:
        queued = JobFigures(self._session).queued(most)
        in_all = sum(queue.queued for queue in self._statuses)
        return OpenJobs(
            at=to_iso(self.now), running=tuple(map(RunningDocument.of_running, self._running)),
            queued=tuple(QueuedDocument.of_job(job, ahead, self.now) for job, ahead in _numbered(queued)),
            queued_in_all=in_all,
        )  # fmt: skip


def _newest_versions(session: Session, figures: JobFigures) -> Sequence[EmbeddingVersion]:
    """Return the latest published versions, in the order in which their jobs ended."""
    numbers = figures.newest_versions(_MOST_VERSIONS)
    known = {(version.task, version.version): version for version in VersionRepository(session).published(numbers)}
    return [known[number] for number in dict.fromkeys(numbers) if number in known]


def _numbered(jobs: Sequence[Job]) -> list[tuple[Job, int]]:
    ahead: dict[str, int] = defaultdict(int)
    numbered = []
    for job in jobs:
        numbered.append((job, ahead[job.queue]))
        ahead[job.queue] += 1
    return numbered


def _retry(job: Job, now: float) -> NextAttempt | None:
    if job.not_before_at <= now:
        return None
    error = job.error or {}
    return NextAttempt(
        job.not_before_at, job.not_before_at - now, job.attempt + 1, job.max_attempts,
        error.get("message") or "no reason was given", counted=error.get("code") != SlotTakenError.code,
    )  # fmt: skip


def _starts_in(session: Session, now: float, queue: str, ahead: int, able: Sequence[WorkerRecord]) -> float | None:
    left = {running.attempt.job.worker: running.left.seconds for running in running_jobs(session, now, able)}
    free_in = [left.get(worker.name, 0.0) for worker in able]
    return starts_in(ahead, free_in, _usual_run(session, now, queue) if ahead else None)


def _usual_run(session: Session, now: float, queue: str) -> float | None:
    """Return the median duration of recent jobs of the queue."""
    ended, _ = JobFigures(session).ended(now)
    return ended[queue].run.p50 if queue in ended else None
