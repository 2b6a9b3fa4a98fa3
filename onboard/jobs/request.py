"""A checked submission on its way into the queue."""

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
class Request:
    """A checked dataset and what is wanted of it.

    Args:
        checked: from `onboard.data.read_dataset`.
        spec: what was asked; its `dataset` and base digest are filled in here.
        queue, priority: where it waits and how urgent it is.
        key: idempotency key.
        time_limit_seconds: how long an attempt may take; None leaves it to the worker's default.
        owner: who submits it, for audit.
        rows: that the dataset was made of, beside an earlier one.
        unchanged: raises where what the dataset was made of has changed, in the transaction that stores the job.
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
