"""A checked submission that is ready for the queue."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from onboard.domain.dataset import Dataset
from onboard.domain.job import JobSpec

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from onboard.data.read import Checked


@dataclass(frozen=True)
class JobRequest:
    """A checked dataset and the requested job.

    Args:
        checked: from `onboard.data.read_dataset`.
        spec: the request; its `dataset` and base digest are filled in here.
        queue, priority: where the job waits, and how urgent it is.
        time_limit_seconds: limit of an attempt; None uses the worker's default.
        owner: the submitter, for the audit log.
        rows: new rows that were combined with an earlier dataset.
        unchanged: raises if the earlier dataset has changed, in the transaction that stores the job.
    """

    checked: Checked
    spec: JobSpec
    queue: str = "default"
    priority: int = 0
    key: str | None = None
    time_limit_seconds: float | None = None
    owner: str | None = None
    rows: Dataset | None = None
    unchanged: Callable[[Session], object] = lambda _: None
