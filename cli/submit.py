"""`onboard submit`: a dataset becomes a job, and with --wait a published version."""

from __future__ import annotations

from typing import Annotated

import typer

from cli.check import require_names
from cli.connection import connected
from cli.options import submit_options
from cli.output import AsJson, Document, emit
from onboard.domain.submission import Submission


@submit_options()
def submit(
    submission: Submission,
    wait: Annotated[bool, typer.Option("--wait", help="Show the stages and wait for the version.")] = False,
    as_json: AsJson = False,
) -> None:
    """Submit a dataset: it is checked, queued, and learned by a worker."""
    require_names(submission)
    with connected(register=False) as service:
        job = service.submit(submission)
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
