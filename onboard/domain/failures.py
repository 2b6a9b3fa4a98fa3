"""Jobs that failed lately, grouped by what went wrong: a hundred jobs of one fault are one thing to mend."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from onboard.domain.job import JobState, Stage
from onboard.domain.moment import to_iso

MOST_NAMED: Final = 5  # jobs that a group names
# What differs between two jobs with the same fault: what is quoted, ids and numbers.
_OWN: Final = re.compile(r"'[^']*'|\"[^\"]*\"|\b[0-9a-f]{12,}\b|\d[\d.,:]*")


@dataclass(frozen=True, slots=True)
class FailedJob:
    """A job that failed or is dead.

    Args:
        finished_at: epoch seconds.
        error: its error document; None where nothing was noted.
    """

    job: str
    task: str
    queue: str
    state: JobState
    stage: Stage | None
    finished_at: float
    error: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class FailureGroup:
    """Jobs with the same fault.

    Args:
        code: of the error.
        message: of the newest one.
        remedy: of the newest one; may be empty.
        count: how many jobs.
        jobs: the newest of them, newest first.
    """

    code: str
    message: str
    remedy: str
    count: int
    jobs: Sequence[FailedJob]

    def to_json(self) -> dict[str, Any]:
        """The group as a JSON-compatible document."""
        return {
            "code": self.code,
            "message": self.message,
            "remedy": self.remedy,
            "count": self.count,
            "jobs": [
                {
                    "job": job.job, "task": job.task, "queue": job.queue, "state": job.state.value,
                    "stage": job.stage.value if job.stage else None, "finished_at": to_iso(job.finished_at),
                }
                for job in self.jobs
            ],
        }  # fmt: skip


def grouped(failed: Iterable[FailedJob]) -> list[FailureGroup]:
    """Groups of one fault each, the one that happened last first.

    Args:
        failed: newest first.
    """
    groups: dict[tuple[str, str], list[FailedJob]] = {}
    for job in failed:
        error = job.error or {}
        groups.setdefault((str(error.get("code", "")), _OWN.sub("…", str(error.get("message", "")))), []).append(job)
    return [
        FailureGroup(
            code=code,
            message=str((jobs[0].error or {}).get("message") or "No reason was noted."),
            remedy=str((jobs[0].error or {}).get("remedy") or ""),
            count=len(jobs),
            jobs=jobs[:MOST_NAMED],
        )
        for (code, _), jobs in groups.items()
    ]
