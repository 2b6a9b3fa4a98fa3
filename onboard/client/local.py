"""Onboard without a server, as functions. Each opens and closes the home folder of this machine; see `onboard.local`.

from onboard.client import local

job = local.submit(frame, "tickets", wait=True) local.predict([{"task": "tickets", "text": "My card was charged
twice."}])
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from onboard.contract.checks import CheckDocument
from onboard.contract.jobs import JobEventDocument, JobStatus
from onboard.domain.prediction import Prediction
from onboard.local import Onboard, require_here

__all__ = ["add", "check", "predict", "submit", "wait"]

_NAME: Final = "onboard.client.local"


def check(dataset: Any, task: str | None = None, **options: Any) -> CheckDocument:
    """Check a dataset and estimate the time. Nothing is queued. Arguments and errors are those of the client."""
    with _opened() as home:
        return home.check(dataset, task, **options)


def submit(dataset: Any, task: str | None = None, *, wait: bool = False, **options: Any) -> JobStatus:
    """Submit a dataset. A worker on this machine learns it. With `wait`, return when the job has ended."""
    with _opened() as home:
        return _waited(home, home.submit(dataset, task, **options), wait)


def add(task: str, dataset: Any, *, wait: bool = False, **options: Any) -> JobStatus:
    """Add rows to a task, correct labels or remove rows. A worker on this machine learns the result."""
    with _opened() as home:
        return _waited(home, home.add(task, dataset, **options), wait)


def wait(
    job: str | JobStatus,
    *,
    timeout_seconds: float | None = None,
    on_event: Callable[[JobEventDocument], None] | None = None,
) -> JobStatus:
    """Wait until a job ends, and start a worker if it has none."""
    with _opened() as home:
        return home.wait(job, timeout_seconds=timeout_seconds, on_event=on_event)


def predict(inputs: Sequence[Mapping[str, Any]]) -> list[Prediction]:
    """Return predictions with all probabilities, in the order of the inputs. Tasks may be mixed.

    Args:
        inputs: `{"task", "ref"?, "labels"?, "unknown"?, "text" | "text_a", "text_b"}` each.

    Raises:
        InputError: an input is invalid.
        NotFoundError: the task or version does not exist.
    """
    with _opened(register=True) as home:
        return home.predict(inputs)


def _opened(register: bool = False) -> Onboard:
    require_here(_NAME)
    return Onboard(register=register, notify=_tell)


def _waited(here: Onboard, job: JobStatus, wait: bool) -> JobStatus:
    document = job.document
    for finding in document["warnings"]:
        _tell(f"warning: {finding['message']} {finding['remedy']}")
    if document["warning"]:
        _tell(f"warning: {document['warning']}")
    return here.wait(job) if wait else job


def _tell(message: str) -> None:
    sys.stderr.write(message + "\n")
