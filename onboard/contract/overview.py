"""The jobs that ended lately, as the first page shows them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, Self

from onboard.contract.document import Document
from onboard.domain.job import JobState, Stage

if TYPE_CHECKING:
    from onboard.domain.failures import FailedJob

MOST_NAMED: Final = 5  # jobs listed per group


class EndedInHour(Document):
    """Number of jobs that ended in one hour of the last day; hours_ago: age of the hour's end, 0 for the last hour."""

    hours_ago: int
    succeeded: int
    failed: int


class FailedJobDocument(Document):
    """A failed or dead job."""

    job: str
    task: str
    queue: str
    state: JobState
    stage: Stage | None
    finished_at: str


class FailureGroup(Document):
    """Jobs with the same error: message and remedy of the newest one, their number, and the newest of them."""

    code: str
    message: str
    remedy: str
    count: int
    jobs: tuple[FailedJobDocument, ...]

    @classmethod
    def of_jobs(cls, failed: Sequence[FailedJob]) -> Self:
        """Return the document of jobs with the same error, newest first."""
        error = failed[0].error or {}
        return cls(
            code=str(error.get("code", "")),
            message=str(error.get("message") or "No reason was recorded."),
            remedy=str(error.get("remedy") or ""),
            count=len(failed),
            jobs=tuple(FailedJobDocument.of(job) for job in failed[:MOST_NAMED]),
        )
