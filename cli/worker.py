"""`onboard worker`: learns what is queued, until it is stopped."""

from __future__ import annotations

import logging
from typing import Annotated

import typer

from cli.output import AsJson, emit, say


def worker(
    queue: Annotated[list[str] | None, typer.Option(help="Queue to take jobs from; may be given again.")] = None,
    device: Annotated[str | None, typer.Option(help="auto, cpu, cuda or cuda:N; default ONBOARD_DEVICE.")] = None,
    name: Annotated[str | None, typer.Option(help="Name among all workers; default host and a random part.")] = None,
    idle_exit: Annotated[float | None, typer.Option(help="Leave after so many seconds without work.")] = None,
    as_json: AsJson = False,
) -> None:
    """Run a worker: one process, one device. SIGTERM lets it finish its job or hand it back."""
    from onboard.queue import DEFAULT_QUEUE
    from onboard.settings import Settings
    from workers.plan import RECONCILE_SECONDS, RECONCILE_SECONDS_EMBEDDED, WorkerPlan
    from workers.run import run_worker, worker_name

    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    settings = Settings()
    plan = WorkerPlan(
        settings=settings,
        name=name or worker_name(),
        queues=tuple(queue or (DEFAULT_QUEUE,)),
        device=device or settings.device,
        idle_exit_seconds=idle_exit,
        reconcile_seconds=RECONCILE_SECONDS_EMBEDDED if settings.embedded else RECONCILE_SECONDS,
    )
    say(f"worker {plan.name} takes jobs from {', '.join(plan.queues)} on {plan.device}")
    code = run_worker(plan)
    emit(
        {"worker": plan.name, "queues": list(plan.queues), "state": "stopped"}, as_json, lambda: f"{plan.name} has left"
    )
    raise typer.Exit(code)
