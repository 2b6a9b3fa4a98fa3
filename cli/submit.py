"""`onboard submit`: queue a job that learns a dataset, or a label set without rows; --wait waits for the version."""

from __future__ import annotations

from typing import Annotated

import typer

from cli.check import require_names
from cli.connection import connected
from cli.options import submit_options
from cli.output import AsJson, Document, emit, say_warnings
from cli.standard_input import STANDARD_INPUT, readable
from onboard.domain.submission import Submission, asked
from onboard.errors import InputError


@submit_options()
def submit(
    submission: Submission,
    wait: Annotated[bool, typer.Option("--wait", help="Show the stages and wait for the version.")] = False,
    as_json: AsJson = False,
) -> None:
    """Check and queue a dataset, which a worker then learns. Without FILE, the task is learned from --labels."""
    require_names(submission)
    if str(submission.dataset) == STANDARD_INPUT and submission.task is None:
        raise InputError("standard-input-without-task")
    with connected(register=False) as service:
        with readable(submission) as read:
            document = service.submit(**asked(read)).document
        say_warnings(document)
        job = {name: document[name] for name in ("job", "state", "task")}
        if wait:
            from cli.watch import wait_for

            wait_for(service, job["job"], as_json)
        else:
            _queued(job, as_json)


def _queued(job: Document, as_json: bool) -> None:
    emit(
        job,
        as_json,
        lambda: f"job {job['job']} is {job['state']} for task {job['task']}\nonboard jobs watch {job['job']}",
    )
