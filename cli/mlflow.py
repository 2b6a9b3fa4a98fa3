"""`onboard mlflow`: what jobs came to, beside other experiments of a team."""

from __future__ import annotations

from typing import Annotated

import typer

from cli.connection import connected
from cli.jobs import JobId
from cli.output import AsJson, emit

app = typer.Typer(help="What jobs came to, in MLflow.", no_args_is_help=True, rich_markup_mode=None)


@app.callback()
def _group() -> None:
    """What jobs came to, in MLflow."""


@app.command("log")
def log(
    job: JobId,
    uri: Annotated[str, typer.Option(help="MLflow's tracking server, http://mlflow.internal:5000, or its store.")],
    experiment: Annotated[str, typer.Option(help="Name of the experiment; made where there is none.")] = "onboard",
    as_json: AsJson = False,
) -> None:
    """Log a job as a run of MLflow: parameters, metrics, pins, the report.

    A job that is there already stays as it is.
    """
    from onboard.report.mlflow_run import log_job

    with connected(register=False) as service:
        document = service.job(job).document
    run, new = log_job(document, uri, experiment)
    logged = {"run": run, "new": new, "job": document["job"], "task": document["task"], "version": document["version"]}
    said = "is now" if new else "is already"
    emit(logged, as_json, lambda: f"{document['task']}@v{document['version']} {said} run {run}")
