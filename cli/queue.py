"""`onboard queue`: how many jobs wait and run, how long they take; pausing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from cli.columns import Columns, age, pair
from cli.live import INTERVAL, Interval, Watch, present
from cli.output import AsJson, emit
from cli.services import opened
from onboard.domain.moment import seconds_text

if TYPE_CHECKING:
    from rich.console import RenderableType

    from onboard.domain.figures import QueueFigures, QueuesSeen

app = typer.Typer(
    help="How many jobs wait and run, how long they take; pausing.", no_args_is_help=True, rich_markup_mode=None
)
Queue = Annotated[str, typer.Argument(help="Name of a queue.")]


@app.command()
def show(watch: Watch = False, interval: Interval = INTERVAL, as_json: AsJson = False) -> None:
    """Every queue: what waits and runs and since when, who serves it, and what ended lately."""
    from onboard.watching import queues

    with opened(register=False) as services:
        present(lambda: queues(services.database), _rendered, as_json, watch, interval)


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


def _rendered(seen: QueuesSeen) -> RenderableType:
    from rich.console import Group
    from rich.text import Text

    troubles = [Text(_unserved(queue), "bold red") for queue in seen.queues if queue.unserved]
    window = seconds_text(seen.queues[0].recent.window_seconds)
    title = Text(f"Jobs that ended in the last {window}; wait and run as median / 95th percentile", "bold")
    return Group(*troubles, _open(seen), title, _recent(seen))


def _unserved(queue: QueueFigures) -> str:
    name, waiting = queue.status.name, queue.status.queued
    jobs = "1 job waits" if waiting == 1 else f"{waiting:,} jobs wait"
    return f"{name}: {jobs}, and no live worker serves it: onboard worker --queue {name}"


def _open(seen: QueuesSeen) -> Columns:
    columns = Columns("queue", "queued", "oldest", "running", "oldest", "workers", "")
    for queue in seen.queues:
        status = queue.status
        later = f"{status.delayed:,} of them later" if status.delayed else ""
        columns.add(
            status.name,
            (f"{status.queued:,}", later),
            age(status.oldest_queued_seconds),
            f"{status.running:,}",
            age(status.oldest_running_seconds),
            str(queue.live_workers) if queue.live_workers or not status.queued else "none",
            "paused" if status.paused else "",
        )
    return columns


def _recent(seen: QueuesSeen) -> Columns:
    columns = Columns("queue", "ended", "last hour", "wait", "run", "retries", "dead")
    for queue in seen.queues:
        recent = queue.recent
        columns.add(
            queue.status.name,
            f"{recent.total:,}",
            f"{recent.per_hour:,.0f}",
            pair(recent.wait.p50, recent.wait.p95),
            pair(recent.run.p50, recent.run.p95),
            f"{recent.retries:,}",
            f"{recent.dead:,}",
        )
    return columns
