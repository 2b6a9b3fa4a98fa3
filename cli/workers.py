"""`onboard workers`: who works, on what."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.output import AsJson, emit
from cli.services import opened

if TYPE_CHECKING:
    from rich.table import Table

app = typer.Typer(help="Who works, on what.", no_args_is_help=True, rich_markup_mode=None)


@app.command("list")
def list_workers(as_json: AsJson = False) -> None:
    """Workers with device, job and heartbeat."""
    from onboard.registry.workers import WorkerRepository

    with opened(register=False) as services, services.database.read() as session:
        workers = WorkerRepository(session).list()
    emit({"workers": [worker.to_json() for worker in workers]}, as_json, lambda: _table(workers))


@app.command()
def drain(worker: Annotated[str, typer.Argument(help="Name of a worker.")], as_json: AsJson = False) -> None:
    """Let a worker finish its job, take no other, and leave."""
    from onboard.registry.workers import WorkerRepository

    with opened(register=False) as services, services.database.write() as session:
        WorkerRepository(session).drain(worker)
    emit({"worker": worker, "state": "draining"}, as_json, lambda: f"worker {worker} is draining")


def _table(workers: Any) -> Table:
    from rich.table import Table

    table = Table("worker", "state", "queues", "device", "job", "host", "pid", "heartbeat")
    for worker in workers:
        each = worker.to_json()
        table.add_row(
            worker.name, each["state"], " ".join(worker.queues), worker.device, worker.job or "", worker.host,
            str(worker.pid or ""), each["heartbeat_at"],
        )  # fmt: skip
    return table
