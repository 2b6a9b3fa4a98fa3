"""`onboard mlflow`: log the results of jobs to MLflow."""

from __future__ import annotations

from typing import Annotated

import typer

from cli.connection import connected
from cli.jobs import JobId
from cli.output import AsJson, emit

app = typer.Typer(help="Log the results of jobs to MLflow.", no_args_is_help=True, rich_markup_mode=None)


@app.callback()
def _group() -> None:
    """Log the results of jobs to MLflow."""


@app.command("log")
def log(
    job: JobId,
    uri: Annotated[
        str, typer.Option(help="URI of MLflow's tracking server or store, such as http://mlflow.internal:5000.")
    ],
    experiment: Annotated[str, typer.Option(help="Name of the experiment, created if it does not exist.")] = "onboard",
    as_json: AsJson = False,
) -> None:
    """Log a job as an MLflow run: parameters, metrics, pins, the report.

    Skips a job that is already logged.
    """
    from onboard.report.mlflow_run import log_job

    with connected(register=False) as service:
        document = service.job(job).document
    run, new = log_job(document, uri, experiment)
    logged = {"run": run, "new": new, "job": document["job"], "task": document["task"], "version": document["version"]}
    state = "is now" if new else "is already"
    emit(logged, as_json, lambda: f"{document['task']}@v{document['version']} {state} run {run}")
