"""Recently failed jobs, grouped by error, because a hundred jobs with one error are one problem."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from onboard.domain.job import JobState, Stage

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


def grouped(failed: Iterable[FailedJob]) -> list[list[FailedJob]]:
    """Return groups with the same error, most recent first.

    Args:
        failed: newest first.
    """
    groups: dict[tuple[str, str], list[FailedJob]] = {}
    for job in failed:
        error = job.error or {}
        groups.setdefault((str(error.get("code", "")), _OWN.sub("…", str(error.get("message", "")))), []).append(job)
    return list(groups.values())
