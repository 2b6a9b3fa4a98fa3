"""Recently failed jobs, grouped by error, because a hundred jobs with one error are one problem."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from onboard.domain.job import JobState, Stage
from onboard.domain.moment import to_iso

MOST_NAMED: Final = 5  # jobs listed per group
# What differs between two jobs with the same error: quotations, ids and numbers.
_OWN: Final = re.compile(r"'[^']*'|\"[^\"]*\"|\b[0-9a-f]{12,}\b|\d[\d.,:]*")


@dataclass(frozen=True, slots=True)
class FailedJob:
    """A failed or dead job.

    Args:
        finished_at: epoch seconds.
        error: its error document; None if there is none.
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
    """Jobs with the same error.

    Args:
        code: code of the error.
        message: message of the newest job.
        remedy: remedy of the newest job; may be empty.
        count: number of jobs.
        jobs: the newest of them, newest first.
    """

    code: str
    message: str
    remedy: str
    count: int
    jobs: Sequence[FailedJob]

    def to_json(self) -> dict[str, Any]:
        """Return the group as a JSON-compatible document."""
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
    """Return groups with the same error, most recent first.

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
            message=str((jobs[0].error or {}).get("message") or "No reason was recorded."),
            remedy=str((jobs[0].error or {}).get("remedy") or ""),
            count=len(jobs),
            jobs=jobs[:MOST_NAMED],
        )
        for (code, _), jobs in groups.items()
    ]
