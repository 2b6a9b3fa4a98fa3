"""`onboard workers`: workers, their jobs and their machines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from cli.columns import UNKNOWN, Columns, age
from cli.connection import connected
from cli.live import INTERVAL, Interval, Watch, present
from cli.output import AsJson, Document, emit
from onboard.domain.counting import size_text
from onboard.domain.moment import seconds_text

if TYPE_CHECKING:
    from collections.abc import Sequence

_ORDER: Final = (
    "faulty",
    "lost",
    "draining",
    "starting",
    "running",
    "stopped",
)  # by name in each: the terminal may be too low

app = typer.Typer(help="List and drain workers.", no_args_is_help=True, rich_markup_mode=None)


@app.command("list")
def list_workers(watch: Watch = False, interval: Interval = INTERVAL, as_json: AsJson = False) -> None:
    """List workers with device, GPU, memory, heartbeat, job and its remaining time."""
    with connected(register=False) as service:
        present(service.workers, _rendered, as_json, watch, interval)


@app.command()
def drain(worker: Annotated[str, typer.Argument(help="Name of a worker.")], as_json: AsJson = False) -> None:
    """Let a worker finish its job and exit; exit 3 if the worker does not exist."""
    with connected(register=False) as service:
        service.drain(worker)
    emit({"worker": worker, "state": "draining"}, as_json, lambda: f"worker {worker} is draining")


def _rendered(seen: Document) -> Columns:
    columns = Columns("worker", "state", "heartbeat", "memory", "device", "job", "time left", folded=("device", "job"))
    for worker in sorted(seen["workers"], key=lambda worker: _ORDER.index(worker["state"])):
        facts = worker["facts"]
        version = facts.get("onboard")
        columns.add(
            (worker["worker"], f"on {worker['host']}", f"onboard {version}" if version else ""),
            (worker["state"], *worker["queues"]),
            age(worker["heartbeat_age_seconds"]),
            "" if facts.get("resident_bytes") is None else size_text(facts["resident_bytes"]),
            (worker["device"], *_gpu(facts)),
            _job(worker) or _trouble(facts),
            time_left(worker),
        )
    return columns


def _gpu(facts: dict[str, Any]) -> Sequence[str]:
    """The GPU's name and readings, and why some are missing."""
    lines = []
    for gpu in facts.get("gpus") or []:
        lines.append(str(gpu.get("name") or ""))
        used, total, busy, warm = (
            gpu.get(key)
            for key in ("memory_used_bytes", "memory_total_bytes", "utilization_ratio", "temperature_celsius")
        )
        if used is not None and total is not None:
            lines.append(f"{size_text(used)} of {size_text(total)}")
        parts = [f"{busy:.0%} busy" if busy is not None else "", f"{warm:.0f} °C" if warm is not None else ""]
        lines.append(", ".join(filter(None, parts)))
    return [*lines, str(facts.get("gpu_reason") or "")]


def _job(worker: Document) -> Sequence[str]:
    if worker["attempt"] is None:
        return ()
    return (f"{worker['job']} {worker['task']}", stage_text(worker), attempt_text(worker))


def _trouble(facts: dict[str, Any]) -> Sequence[str]:
    """Why the worker takes no jobs, or which jobs it leaves to others."""
    trouble = facts.get("trouble")
    return (str(trouble.get("message")), f"→ {trouble.get('remedy')}") if isinstance(trouble, dict) else ()


def stage_text(progress: dict[str, Any]) -> str:
    """The stage of a running job and its duration: "train for 12 s". `progress` has the fields of `Progress`."""
    stage, seconds = progress["stage"], progress["stage_seconds"]
    return f"{stage} for {seconds_text(seconds)}" if stage and seconds is not None else "just claimed"


def attempts_text(attempt: int, of: int) -> str:
    """The attempt and the number of attempts; empty before the first."""
    return f"{attempt} of {of}" if attempt else ""


def attempt_text(progress: dict[str, Any]) -> str:
    """The attempt as part of a sentence."""
    return f"attempt {attempts_text(progress['attempt'], progress['max_attempts'])}"


def time_left(progress: dict[str, Any]) -> str:
    """The remaining time, or that it is unknown."""
    if progress["attempt"] is None:
        return ""
    seconds = progress["left_seconds"]
    return UNKNOWN if seconds is None else f"about {seconds_text(seconds)}"
