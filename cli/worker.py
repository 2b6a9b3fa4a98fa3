"""`onboard worker`: run queued jobs until stopped."""

from __future__ import annotations

import logging
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

import typer

from cli.output import AsJson, emit
from cli.services import local_only

_logger = logging.getLogger(__name__)


@local_only("worker")
def worker(
    queue: Annotated[list[str] | None, typer.Option(help="Queue to take jobs from. Repeatable.")] = None,
    device: Annotated[str | None, typer.Option(help="auto, cpu, cuda or cuda:N. Defaults to ONBOARD_DEVICE.")] = None,
    name: Annotated[
        str | None, typer.Option(help="Unique name of the worker. Defaults to the host and a random part.")
    ] = None,
    idle_exit: Annotated[float | None, typer.Option(help="Exit after this many seconds without work.")] = None,
    alive_file: Annotated[
        Path | None,
        typer.Option(
            help="Touch this file twice a second while the worker is healthy, for a health check: find FILE -mmin -1"
        ),
    ] = None,
    metrics_port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="Port for Prometheus metrics of the whole deployment.")
    ] = None,
    metrics_host: Annotated[
        str, typer.Option(help="Address for the metrics; 0.0.0.0 allows other machines.")
    ] = "127.0.0.1",
    as_json: AsJson = False,
) -> None:
    """Run a worker: one process on one device. On SIGTERM it finishes its job or hands it back."""
    from onboard.jobs.doorbell import DEFAULT_QUEUE
    from onboard.operations.processes import worker_name
    from onboard.settings import Settings
    from workers.exporter import exported
    from workers.logs import set_up_logging
    from workers.plan import WorkerPlan
    from workers.run import run_worker

    settings = Settings()
    plan = WorkerPlan(
        settings=settings, name=name or worker_name(), queues=tuple(queue or (DEFAULT_QUEUE,)),
        device=device or settings.device, idle_exit_seconds=idle_exit, alive_file=alive_file, is_program=True,
    )  # fmt: skip
    set_up_logging(settings.log_format, plan.name)
    metrics = nullcontext(None) if metrics_port is None else exported(settings, metrics_port, metrics_host)
    with metrics as url:
        if url:
            _logger.info("Metrics at %s", url)
        code = run_worker(plan)
    if as_json:
        emit({"worker": plan.name, "queues": list(plan.queues), "state": "stopped"}, as_json, str)
    raise typer.Exit(code)
