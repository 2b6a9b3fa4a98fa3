"""What a queue has to do, in plain Python: one process, one clock, no database."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import Any

from onboard.domain.job import MAX_ATTEMPTS, JobState

LEASE_SECONDS = 20.5  # the halves and quarters never meet the whole seconds of the clock
DELAY_SECONDS = 10.25

Token = tuple[str, int]  # a job and the attempt that was given out


@dataclass
class ModelJob:
    """A job as it has to be."""

    id: str
    number: int
    task: str
    queue: str
    priority: int
    max_attempts: int
    not_before: float
    turn: int
    state: JobState = JobState.QUEUED
    attempt: int = 0
    cancel_requested: bool = False
    lease: float | None = None
    worker: str | None = None
    pid: int | None = None
    states: list[str] = field(default_factory=lambda: ["queued"])

    def enter(self, state: JobState, lease: float | None = None) -> None:
        self.state = state
        self.lease = lease
        self.states.append(state.value)

    def seen(self) -> dict[str, Any]:
        """What the registry has to tell of it; times apart."""
        return {
            "state": self.state, "attempt": self.attempt, "max_attempts": self.max_attempts, "worker": self.worker,
            "worker_pid": self.pid, "cancel_requested": self.cancel_requested, "leased": self.lease is not None,
        }  # fmt: skip


@dataclass
class QueueModel:
    """All jobs, the clock, the paused queues, the workers that leave, and what was published for each task."""

    now: float = 1000.0
    jobs: dict[str, ModelJob] = field(default_factory=dict)
    paused: set[str] = field(default_factory=set)
    leaving: set[str] = field(default_factory=set)
    versions: dict[str, list[str]] = field(default_factory=dict)

    def add(self, job: str, task: str, queue: str, priority: int) -> None:
        turn = self.next_turn(queue, priority)
        self.jobs[job] = ModelJob(job, len(self.jobs), task, queue, priority, MAX_ATTEMPTS, self.now, turn)

    def next_turn(self, queue: str, priority: int) -> int:
        """All jobs are those of one owner: a job that is queued waits after those that wait already."""
        waiting = [job for job in self.jobs.values() if (job.queue, job.priority) == (queue, priority)]
        turns = [job.turn for job in waiting if job.state is JobState.QUEUED]
        return max(turns) + 1 if turns else len(self.jobs) + 1

    def expired(self, job: ModelJob) -> bool:
        return job.state is JobState.RUNNING and job.lease is not None and job.lease <= self.now

    def runnable(self) -> Iterator[ModelJob]:
        for job in self.jobs.values():
            waits = job.state is JobState.QUEUED and job.not_before <= self.now and job.queue not in self.paused
            lost = self.expired(job) and not job.cancel_requested
            if job.attempt < job.max_attempts and (waits or lost):
                yield job

    def claim(self, worker: str, pid: int, queues: Collection[str]) -> ModelJob | None:
        ready = [job for job in self.runnable() if job.queue in queues]
        if worker in self.leaving or not ready:
            return None
        job = min(ready, key=lambda waiting: (-waiting.priority, waiting.turn, waiting.number))
        job.attempt += 1
        job.worker, job.pid = worker, pid
        job.enter(JobState.RUNNING, self.now + LEASE_SECONDS)
        return job

    def owned(self, token: Token) -> ModelJob | None:
        """The job, if this attempt still owns it."""
        job = self.jobs[token[0]]
        return job if job.state is JobState.RUNNING and job.attempt == token[1] else None

    def act(self, job: ModelJob, what: str) -> Any:
        """What the attempt that owns the job does; the answer that it hears."""
        if what == "heartbeat":
            job.lease = self.now + LEASE_SECONDS
        if what in ("heartbeat", "note"):
            return job.cancel_requested
        if what == "published":
            job.enter(JobState.SUCCEEDED)
            self.versions.setdefault(job.task, []).append(job.id)
            return len(self.versions[job.task])
        if what == "released":
            job.max_attempts += 1
            self._requeue(job, 0.0)
        elif what == "later" and job.attempt < job.max_attempts:
            self._requeue(job, DELAY_SECONDS)
        else:
            job.enter(JobState.DEAD if what == "later" else JobState(what))
        return None

    def _requeue(self, job: ModelJob, delay: float) -> None:
        job.worker = job.pid = None
        job.not_before = self.now + delay
        job.enter(JobState.QUEUED)

    def expire(self, worker: str, pid: int) -> set[str]:
        expired = [
            job for job in self.jobs.values()
            if (job.state, job.worker, job.pid) == (JobState.RUNNING, worker, pid) and not self.expired(job)
        ]  # fmt: skip
        for job in expired:
            job.lease = self.now
        return {job.id for job in expired}

    def end_abandoned(self) -> set[str]:
        lost = [job for job in self.jobs.values() if self.expired(job)]
        ended = [job for job in lost if job.cancel_requested or job.attempt >= job.max_attempts]
        for job in ended:
            job.enter(JobState.CANCELLED if job.cancel_requested else JobState.DEAD)
        return {job.id for job in ended}

    def cancel(self, job: ModelJob) -> bool:
        """Whether it could be cancelled, or asked to stop."""
        if job.state.finished:
            return False
        job.cancel_requested = True
        if job.state is JobState.QUEUED:
            job.enter(JobState.CANCELLED)
        return True

    def retry(self, job: ModelJob) -> bool:
        """Whether it could be queued again."""
        if job.state not in (JobState.FAILED, JobState.CANCELLED, JobState.DEAD):
            return False
        job.cancel_requested = False
        job.max_attempts = job.attempt + MAX_ATTEMPTS
        job.not_before = self.now
        job.turn = self.next_turn(job.queue, job.priority)
        job.enter(JobState.QUEUED)
        return True
