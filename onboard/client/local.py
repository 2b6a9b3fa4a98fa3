"""Onboard without a server: `onboard check`, `submit` and `predict` for programs and notebooks on this machine.

    from onboard.client import local

    job = local.submit(frame, "tickets", wait=True)
    local.predict([{"task": "tickets", "text": "My card was charged twice."}])

It takes what the commands take, in their words, and frames of pandas, polars and `datasets` beside files; it returns
what `onboard.client` returns. The home, the base and the queue are those that the environment names.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from typing import Any, Final

from cli.check import pace_here
from cli.local import LocalGateway
from cli.services import opened, require_here
from onboard.client.document import Document
from onboard.client.frames import as_files
from onboard.client.service import not_ended, require_success
from onboard.contract.checks import CheckDocument
from onboard.contract.jobs import JobEventDocument, JobStatus
from onboard.domain.addition import Addition
from onboard.domain.arguments import speaking_of_arguments
from onboard.domain.job import EVENTS_AT_ONCE, JobState
from onboard.domain.prediction import Prediction
from onboard.domain.submission import Submission
from onboard.jobs import submission as submissions
from onboard.settings import Settings

__all__ = ["add", "check", "predict", "submit", "wait"]

_HERE: Final = "this machine"
_WORKER_LOOK_SECONDS: Final = 10.0


def check(dataset: Any, task: str | None = None, **options: Any) -> CheckDocument:
    """Check a dataset and estimate the time. Nothing is queued.

    Args:
        dataset: a file, a folder, `hf://OWNER/NAME`, a `Dataset`, a `DatasetDict`, or a frame of pandas or polars.
        task: its name; a frame has none of its own.
        options: as `onboard check` has them: label_field="topic", shots=32, …

    Raises:
        DatasetError: rows are wrong; `data["problems"]` names them.
        InputError: an option is wrong, or a frame cannot be read as rows.
        NotAllowedError: ONBOARD_API_URL names a service: `onboard.client.Onboard` asks that.
    """
    require_here("onboard.client.local")
    with speaking_of_arguments(), as_files({"dataset": dataset, "task": task, **options}) as asked:
        report = submissions.check(Submission(**asked), Settings().base, pace=pace_here())
        return Document.of(report, _HERE).parsed(CheckDocument)


def submit(dataset: Any, task: str | None = None, *, wait: bool = False, **options: Any) -> JobStatus:
    """Submit a dataset. A worker on this machine learns it.

    Args:
        dataset, task, options: as of `check`, and what `onboard submit` takes beyond.
        wait: whether to return when the job has ended, with the version that it published.

    Raises:
        DatasetError, InputError, NotAllowedError: as of `check`; nothing was queued.
        ConflictError: the task has another label set.
        JobFailedError, CancelledError: with `wait`, as of `wait`.
    """
    require_here("onboard.client.local")
    given = {"dataset": dataset, "task": task, **options}
    with speaking_of_arguments(), as_files(given) as asked, opened(register=False) as services:
        gateway = LocalGateway(services)
        job = gateway.submit(Submission(**asked))["job"]
        status = Document.of(gateway.job(job), _HERE).parsed(JobStatus)
    return _waited(job) if wait else status


def add(task: str, dataset: Any, *, wait: bool = False, **options: Any) -> JobStatus:
    """Add rows to a task, correct labels or remove rows. A worker on this machine learns the result.

    Args:
        task: its name.
        dataset: a file, or a frame of pandas, polars or `datasets`.
        wait: whether to return when the job has ended, with the version that it published.
        options: those of `onboard add`: replace=True, remove=True, new_labels=True, fast=True, …

    Raises:
        DatasetError, InputError: the rows do not fit the task, or change nothing.
        NotFoundError, ConflictError: there is no such task, or its rows are not stored here.
        JobFailedError, CancelledError: with `wait`, as of `wait`.
    """
    require_here("onboard.client.local")
    given = {"dataset": dataset, "task": task, **options}
    with speaking_of_arguments(), as_files(given) as asked, opened(register=False) as services:
        del asked["task"]
        gateway = LocalGateway(services)
        job = gateway.add(task, Addition(**asked))["job"]
        status = JobStatus.of(Document.of(gateway.job(job), _HERE))
    return _waited(job) if wait else status


def wait(
    job: str | JobStatus,
    *,
    timeout_seconds: float | None = None,
    on_event: Callable[[JobEventDocument], None] | None = None,
) -> JobStatus:
    """Wait until a job ends, and start a worker if it has none.

    Args:
        job: its id, its task's name, or what `submit` returned.
        timeout_seconds: how long at most; None is for ever.
        on_event: called with each event.

    Raises:
        JobFailedError: it failed or is dead; CancelledError: it was cancelled.
        UnavailableError: the time is over, and the job goes on.
        NotFoundError: there is no such job.
    """
    require_here("onboard.client.local")
    return _waited(job if isinstance(job, str) else job.id, timeout_seconds, on_event)


def predict(inputs: Sequence[Mapping[str, Any]]) -> list[Prediction]:
    """Predictions with all probabilities, in the order of the inputs. Tasks may be mixed.

    Args:
        inputs: `{"task", "ref"?, "labels"?, "unknown"?, "text" | "text_a", "text_b"}` each.

    Raises:
        InputError: an input is wrong; NotFoundError: no such task or version.
    """
    require_here("onboard.client.local")
    with opened() as services, closing(LocalGateway(services)) as gateway:
        return gateway.predict(inputs, probabilities=True)


def _waited(
    job: str, timeout_seconds: float | None = None, on_event: Callable[[JobEventDocument], None] | None = None
) -> JobStatus:
    started = looked = time.monotonic()
    seen = 0
    with opened(register=False) as services:
        gateway = LocalGateway(services)
        while True:
            news = gateway.progress(job, seen)
            for document in news["events"]:
                seen = document["id"]
                if on_event is not None:
                    on_event(Document.of(document, _HERE).parsed(JobEventDocument))
            now = time.monotonic()
            if JobState(news["state"]).finished and len(news["events"]) < EVENTS_AT_ONCE:
                return require_success(Document.of(gateway.job(job), _HERE).parsed(JobStatus))
            if timeout_seconds is not None and now - started > timeout_seconds:
                raise not_ended(job, timeout_seconds)
            if now - looked > _WORKER_LOOK_SECONDS:
                looked = now
                gateway.keep_served(news["queue"])
            time.sleep(gateway.poll_seconds)
