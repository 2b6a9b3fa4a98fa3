"""`onboard queue`: waiting and running jobs and their durations; pause and resume."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from cli.columns import Columns, age, pair
from cli.connection import connected
from cli.live import INTERVAL, Interval, Watch, present
from cli.output import AsJson, Document, emit, say
from onboard.domain.counting import size_text
from onboard.domain.moment import seconds_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import RenderableType

app = typer.Typer(help="Show, pause and resume queues.", no_args_is_help=True, rich_markup_mode=None)
Queue = Annotated[str, typer.Argument(help="Name of a queue.")]


@app.command()
def show(watch: Watch = False, interval: Interval = INTERVAL, as_json: AsJson = False) -> None:
    """Show all queues: waiting and running jobs with their age, workers, and recently ended jobs."""
    with connected(register=False) as service:
        present(service.queues, _rendered, as_json, watch, interval)


@app.command()
def pause(queue: Queue = "default", as_json: AsJson = False) -> None:
    """Pause a queue; running jobs continue."""
    _set_paused(queue, True, as_json)


@app.command()
def resume(queue: Queue = "default", as_json: AsJson = False) -> None:
    """Resume a paused queue."""
    _set_paused(queue, False, as_json)


def _set_paused(queue: str, paused: bool, as_json: bool) -> None:
    with connected(register=False) as service:
        warning = service.set_paused(queue, paused)
    if warning:
        say(f"warning: {warning}")
    emit({"queue": queue, "paused": paused}, as_json, lambda: f"queue {queue} is {'paused' if paused else 'open'}")


def _rendered(seen: Document) -> RenderableType:
    from rich.console import Group
    from rich.text import Text

    queues = seen["queues"]
    troubles = [Text(_unserved(queue), "bold red") for queue in queues if queue["unserved"]]
    window = seconds_text(queues[0]["recent"]["window_seconds"])
    title = Text(f"Jobs that ended in the last {window}; wait and run as median / 95th percentile", "bold")
    owners = seen.get("owners") or ()  # older services do not say
    return Group(*troubles, _open(queues), *([_owners(owners)] if owners else []), title, _recent(queues))


def _unserved(queue: Document) -> str:
    name, waiting = queue["queue"], queue["queued"] + queue["lost"]
    jobs = "1 job waits" if waiting == 1 else f"{waiting:,} jobs wait"
    return f"{name}: {jobs}, and no live worker serves it: onboard worker --queue {name}"


def _open(queues: Sequence[Document]) -> Columns:
    columns = Columns("queue", "queued", "oldest", "running", "oldest", "workers", "")
    for queue in queues:
        later = f"{queue['delayed']:,} of them later" if queue["delayed"] else ""
        columns.add(
            queue["queue"],
            (f"{queue['queued']:,}", later),
            age(queue["oldest_queued_seconds"]),
            (f"{queue['running']:,}", f"{queue['lost']:,} of them lost" if queue["lost"] else ""),
            age(queue["oldest_running_seconds"]),
            "none" if queue["unserved"] else str(queue["live_workers"]),
            "paused" if queue["paused"] else "",
        )
    return columns


def _owners(owners: Sequence[Document]) -> Columns:
    columns = Columns("owner", "queued", "running", "job limit", "jobs left", "stored", "byte limit", "bytes left")
    for owner in owners:
        columns.add(
            owner["owner"],
            f"{owner['queued']:,}",
            f"{owner['running']:,}",
            *("" if owner[field] is None else f"{owner[field]:,}" for field in ("max_jobs", "jobs_left")),
            *(
                "" if owner[field] is None else size_text(owner[field])
                for field in ("bytes", "max_bytes", "bytes_left")
            ),
        )
    return columns


def _recent(queues: Sequence[Document]) -> Columns:
    columns = Columns("queue", "ended", "last hour", "wait", "run", "retries", "dead")
    for queue in queues:
        recent = queue["recent"]
        columns.add(
            queue["queue"],
            f"{recent['ended']:,}",
            f"{recent['ended_per_hour']:,.0f}",
            pair(recent["wait_p50_seconds"], recent["wait_p95_seconds"]),
            pair(recent["run_p50_seconds"], recent["run_p95_seconds"]),
            f"{recent['retries']:,}",
            f"{recent['dead']:,}",
        )
    return columns
