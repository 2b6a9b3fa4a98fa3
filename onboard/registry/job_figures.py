"""Statistics of jobs for dashboards: finished, running and queued jobs.

Every query is bounded and uses an index, so its time does not depend on the number of jobs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Subquery, and_, case, func, or_, select

from onboard.contract.overview import EndedInHour
from onboard.domain.failures import FailedJob
from onboard.domain.figures import HOUR, NO_SAMPLE, Ended, Percentiles
from onboard.domain.job import Job, JobState, Stage
from onboard.domain.running import RunningAttempt
from onboard.registry.jobs import to_job
from onboard.registry.repository import Repository
from onboard.registry.states import IS_OPEN, IS_RUNNING
from onboard.registry.tables import JobEventRow, JobRow
from onboard.registry.turns import CLAIM_ORDER

WINDOW_SECONDS: Final = 24 * 3600.0
_HOURS: Final = int(WINDOW_SECONDS / HOUR)
MOST_ENDED: Final = 5_000  # jobs; a window with more of them is shortened
MOST_FAILED: Final = 500  # jobs to compare by reason
MOST_TIMED: Final = 200  # successful jobs to compare with running ones

_IS_QUEUED: Final = and_(IS_OPEN, JobRow.state == JobState.QUEUED)

# A retry (manual or after an error) changes the due time; before the first start it is the submission time.
_DUE_AT: Final = case((JobRow.not_before_at <= JobRow.started_at, JobRow.not_before_at), else_=JobRow.created_at)
_WAIT: Final = (JobRow.started_at - _DUE_AT).label("wait")
_RUN: Final = (JobRow.finished_at - JobRow.started_at).label("run")
_SHARES: Final = (50, 95)  # percent
_REPORT: Final = ("options", "dataset_report")


@dataclass(frozen=True, slots=True)
class TimedJob:
    """Times of a successful job, for comparison.

    Args:
        stage_seconds: by the stage's name.
        report: the parts of its dataset report that give the size of the dataset; values may be None.
    """

    queue: str
    base: str | None
    tuning: str
    stage_seconds: dict[str, float]
    report: dict[str, Any]
    method: str = ""


class JobFigures(Repository):
    """Read-only statistics. `now` is epoch seconds by the database's clock (`read_clock`).

    It is passed as a number because PostgreSQL cannot use an index for the clock's changing value.
    """

    def ended(
        self, now: float, window_seconds: float = WINDOW_SECONDS, most: int = MOST_ENDED
    ) -> tuple[dict[str, Ended], float]:
        """Return what ended in the window after running, by queue, and the length of the window in seconds.

        If more than `most` jobs ended, the window is shortened to the newest `most`. The database counts and ranks, so
        a page that refreshes often reads few rows.
        """
        lately = (JobRow.finished_at > now - window_seconds, JobRow.started_at.is_not(None))
        newest = JobRow.finished_at.desc()
        last = select(JobRow.finished_at).where(*lately).order_by(newest).offset(most - 1).limit(2)
        ends = self._session.scalars(last).all()
        if len(ends) > 1:
            window_seconds = max(now - (ends[0] or now), 1.0)
        columns = (JobRow.queue, JobRow.state, JobRow.attempt, JobRow.finished_at, _WAIT, _RUN)
        jobs = select(*columns).where(*lately).order_by(newest).limit(most).subquery()
        statement = select(
            jobs.c.queue, jobs.c.state, func.count().label("jobs"), func.sum(jobs.c.attempt - 1).label("retries"),
            func.count().filter(jobs.c.finished_at > now - HOUR).label("in_last_hour"),
        ).group_by(jobs.c.queue, jobs.c.state)  # fmt: skip
        by_queue: dict[str, list[Any]] = defaultdict(list)
        for row in self._session.execute(statement):
            by_queue[row.queue].append(row)
        waits, runs = self._percentiles(jobs, "wait"), self._percentiles(jobs, "run")
        by_name = {
            queue: Ended(
                window_seconds,
                {JobState(row.state): row.jobs for row in rows},
                sum(row.in_last_hour for row in rows),
                sum(row.retries for row in rows),
                waits.get(queue, NO_SAMPLE),
                runs.get(queue, NO_SAMPLE),
            )
            for queue, rows in by_queue.items()
        }
        return by_name, window_seconds

    def by_hour(self, now: float, most: int = MOST_ENDED) -> list[EndedInHour]:
        """Return what ended in each hour of the last day, oldest first, among the newest `most` jobs."""
        ends = (
            select(JobRow.finished_at, JobRow.state)
            .where(JobRow.finished_at > now - WINDOW_SECONDS)
            .order_by(JobRow.finished_at.desc())
            .limit(most)
            .subquery()
        )
        ago = func.floor((now - ends.c.finished_at) / HOUR)
        statement = select(ago.label("ago"), ends.c.state, func.count().label("jobs")).group_by(ago, ends.c.state)
        counts: dict[tuple[int, JobState], int] = {}
        for row in self._session.execute(statement):
            counts[max(int(row.ago), 0), JobState(row.state)] = row.jobs
        failed = (JobState.FAILED, JobState.DEAD)
        return [
            EndedInHour(
                hours_ago=hour,
                succeeded=counts.get((hour, JobState.SUCCEEDED), 0),
                failed=sum(counts.get((hour, state), 0) for state in failed),
            )
            for hour in reversed(range(_HOURS))
        ]

    def newest_versions(self, limit: int) -> list[tuple[str, int]]:
        """Return task and number of the versions of the last finished jobs, newest first."""
        number = JobRow.result["version"].as_integer()
        numbers = (  # avoids reading the wide rows
            select(JobRow.number)
            .where(JobRow.finished_at.is_not(None), JobRow.state == JobState.SUCCEEDED)
            .order_by(JobRow.finished_at.desc())
            .limit(limit)
        )
        statement = select(JobRow.task, number).where(JobRow.number.in_(numbers)).order_by(JobRow.finished_at.desc())
        return [(task, version) for task, version in self._session.execute(statement) if version is not None]

    def newest_end(self) -> float | None:
        """Return when the last finished job ended; None if there is none."""
        return self._session.scalars(select(func.max(JobRow.finished_at)).where(JobRow.finished_at.is_not(None))).one()

    def _percentiles(self, jobs: Subquery, column: str) -> dict[str, Percentiles]:
        """Return the percentiles of a column by queue."""
        place = func.row_number().over(partition_by=jobs.c.queue, order_by=jobs.c[column]) - 1
        last = func.count().over(partition_by=jobs.c.queue) - 1
        ranked = select(jobs.c.queue, jobs.c[column], place.label("place"), last.label("last")).subquery()
        places = [neighbour for share in _SHARES for neighbour in _neighbours(ranked.c.last, share)]
        sizes: dict[str, int] = {}
        samples: dict[str, dict[int, float]] = defaultdict(dict)
        for queue, seconds, at, end in self._session.execute(select(ranked).where(ranked.c.place.in_(places))):
            sizes[queue], samples[queue][at] = end, seconds
        return {queue: _between(samples[queue], end) for queue, end in sizes.items()}

    def failed(
        self, now: float, window_seconds: float = WINDOW_SECONDS, most: int = MOST_FAILED
    ) -> Sequence[FailedJob]:
        """Return at most `most` jobs that failed or died in the window, newest first."""
        ended = JobRow.finished_at > now - window_seconds
        numbers = (  # avoids reading the wide rows
            select(JobRow.number)
            .where(ended, JobRow.state.in_([JobState.FAILED, JobState.DEAD]))
            .order_by(JobRow.finished_at.desc())
            .limit(most)
        )
        statement = (
            select(JobRow.id, JobRow.task, JobRow.queue, JobRow.state, JobRow.stage, JobRow.finished_at, JobRow.error)
            .where(JobRow.number.in_(numbers))
            .order_by(JobRow.finished_at.desc())
        )
        return [
            FailedJob(job, task, queue, JobState(state), Stage.known(stage), finished_at or now, error)
            for job, task, queue, state, stage, finished_at, error in self._session.execute(statement)
        ]

    def ahead(self, job: Job, now: float) -> int:
        """Return the number of queued jobs of its queue that are claimed before `job`."""
        number, turn = (select(of).where(JobRow.id == job.id).scalar_subquery() for of in (JobRow.number, JobRow.turn))
        same_turn = and_(JobRow.turn == turn, JobRow.number < number)
        earlier = and_(JobRow.priority == job.priority, or_(JobRow.turn < turn, same_turn))
        statement = select(func.count()).where(
            _IS_QUEUED,
            JobRow.queue == job.queue,
            JobRow.not_before_at <= max(now, job.not_before_at),
            or_(JobRow.priority > job.priority, earlier),
        )
        return self._session.scalars(statement).one()

    def queued(self, limit: int) -> Sequence[Job]:
        """Return the most urgent queued jobs, in the order in which they are claimed."""
        numbers = (  # avoids reading the wide rows
            select(JobRow.number).where(_IS_QUEUED).order_by(*CLAIM_ORDER).limit(limit)
        )
        statement = select(JobRow).where(JobRow.number.in_(numbers)).order_by(*CLAIM_ORDER)
        return [to_job(row) for row in self._session.scalars(statement)]

    def attempts(self, now: float) -> Sequence[RunningAttempt]:
        """Return every running job with its current attempt, the longest-running first."""
        jobs = [to_job(row) for row in self._session.scalars(select(JobRow).where(IS_RUNNING))]
        marks = self._marks(jobs)
        attempts = (_attempt(job, now, *marks.get((job.id, job.attempt), (None, ""))) for job in jobs)
        return sorted(attempts, key=lambda run: -run.seconds)

    def _marks(self, jobs: Sequence[Job]) -> dict[tuple[str, int], tuple[float | None, str]]:
        """Return, by attempt, when it entered its stage, and its last note since."""
        last = (
            select(
                JobEventRow.job,
                JobEventRow.attempt,
                func.max(JobEventRow.at).filter(JobEventRow.kind == "stage_started").label("staged_at"),
                func.max(JobEventRow.id).label("id"),
            )
            .where(JobEventRow.job.in_([job.id for job in jobs]))
            .group_by(JobEventRow.job, JobEventRow.attempt)
            .subquery()
        )
        note = case((JobEventRow.kind == "note", JobEventRow.message), else_="")
        statement = select(last.c.job, last.c.attempt, last.c.staged_at, note).join(
            JobEventRow, JobEventRow.id == last.c.id
        )
        return {(job, attempt): (staged_at, note) for job, attempt, staged_at, note in self._session.execute(statement)}

    def timed(self, now: float, window_seconds: float = 7 * WINDOW_SECONDS) -> Iterator[TimedJob]:
        """Yield recently successful jobs, newest first, with the seconds of their stages."""
        parts = {name: JobRow.spec[(*_REPORT, name)] for name in ("rows", "characters", "validation")}
        base, tuning = JobRow.spec[("options", "base_digest")], JobRow.spec["tune_hypernetwork"]
        method = JobRow.spec["method"]
        statement = (
            select(JobRow.queue, base, tuning, method, JobRow.result["seconds"], *parts.values())
            .where(JobRow.finished_at > now - window_seconds, JobRow.state == JobState.SUCCEEDED)
            .order_by(JobRow.finished_at.desc())
            .limit(MOST_TIMED)
        )
        for queue, digest, tuned, named, seconds, *report in self._session.execute(statement):
            if seconds:
                yield TimedJob(queue, digest, tuned, seconds, dict(zip(parts, report, strict=True)), named or "")


def _neighbours(last: Any, share: int) -> tuple[Any, Any]:
    """Return the neighboring places (0 to `last`) of a percentile in a sorted sample. Works for numbers and columns."""
    return last * share // 100, (last * share + 99) // 100


def _between(sample: Mapping[int, float], last: int) -> Percentiles:
    """Return the percentiles of a sorted sample, interpolated from the values at neighboring places."""
    places = []
    for share in _SHARES:
        below, above = _neighbours(last, share)
        places.append(sample[below] + (sample[above] - sample[below]) * (last * share % 100) / 100)
    return Percentiles(*places)


def _attempt(job: Job, now: float, staged_at: float | None, note: str) -> RunningAttempt:
    # unknown for a job that has been running since before an upgrade
    claimed_at = job.claimed_at or job.started_at or now
    return RunningAttempt(
        job=job,
        seconds=max(now - claimed_at, 0.0),
        stage_seconds=None if staged_at is None else max(now - staged_at, 0.0),
        note=note,
        lease_seconds=(job.lease_expires_at or now) - now,
    )
