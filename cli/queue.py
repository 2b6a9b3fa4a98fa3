"""`onboard queue`: how many jobs wait and run; pausing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.output import AsJson, emit
from cli.services import opened

if TYPE_CHECKING:
    from rich.table import Table

app = typer.Typer(help="How many jobs wait and run; pausing.", no_args_is_help=True, rich_markup_mode=None)
Queue = Annotated[str, typer.Argument(help="Name of a queue.")]


@app.command()
def show(as_json: AsJson = False) -> None:
    """Every queue: jobs that wait and run, and since when the oldest waits."""
    from onboard.registry.workers import QueueRepository

    with opened(register=False) as services, services.database.read() as session:
        queues = QueueRepository(session).list()
    emit({"queues": [queue.to_json() for queue in queues]}, as_json, lambda: _table(queues))


@app.command()
def pause(queue: Queue = "default", as_json: AsJson = False) -> None:
    """Hold a queue's waiting jobs back; running ones go on."""
    _set_paused(queue, True, as_json)


@app.command()
def resume(queue: Queue = "default", as_json: AsJson = False) -> None:
    """Let a paused queue go on."""
    _set_paused(queue, False, as_json)


def _set_paused(queue: str, paused: bool, as_json: bool) -> None:
    from cli.waking import wake
    from onboard.registry.workers import QueueRepository

    with opened(register=False) as services:
        with services.database.write() as session:
            QueueRepository(session).set_paused(queue, paused)
        if not paused:
            wake(services, queue)
    emit({"queue": queue, "paused": paused}, as_json, lambda: f"queue {queue} is {'paused' if paused else 'open'}")


def _table(queues: Any) -> Table:
    from rich.table import Table

    table = Table("queue", "queued", "running", "oldest waits", "")
    for queue in queues:
        oldest = f"{queue.oldest_queued_seconds:.0f} s" if queue.oldest_queued_seconds is not None else ""
        table.add_row(queue.name, str(queue.queued), str(queue.running), oldest, "paused" if queue.paused else "")
    return table
