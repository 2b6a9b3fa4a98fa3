"""`onboard workers`: who works, on what, and how its machine is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from cli.columns import UNKNOWN, Columns, age, mebibytes
from cli.live import INTERVAL, Interval, Watch, present
from cli.output import AsJson, emit
from cli.services import opened
from onboard.domain.moment import seconds_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from onboard.domain.job import Job
    from onboard.domain.running import RunningJob
    from onboard.watching import WorkersSeen

_ORDER: Final = ("lost", "draining", "starting", "running", "stopped")  # by name in each: the terminal may be too low

app = typer.Typer(help="Who works, on what, and how its machine is.", no_args_is_help=True, rich_markup_mode=None)


@app.command("list")
def list_workers(watch: Watch = False, interval: Interval = INTERVAL, as_json: AsJson = False) -> None:
    """Workers with device, GPU, memory, heartbeat, job and the time that it still takes."""
    from onboard.watching import workers

    with opened(register=False) as services:
        present(lambda: workers(services.database), _rendered, as_json, watch, interval)


@app.command()
def drain(worker: Annotated[str, typer.Argument(help="Name of a worker.")], as_json: AsJson = False) -> None:
    """Let a worker finish its job, take no other, and leave; exit 3 when no such worker lives."""
    from onboard.registry.workers import WorkerRepository

    with opened(register=False) as services, services.database.write() as session:
        WorkerRepository(session).drain(worker)
    emit({"worker": worker, "state": "draining"}, as_json, lambda: f"worker {worker} is draining")


def _rendered(seen: WorkersSeen) -> Columns:
    columns = Columns("worker", "state", "heartbeat", "memory", "device", "job", "time left", folded=("device",))
    for worker in sorted(seen.workers, key=lambda worker: _ORDER.index(worker.record.shown_state)):
        record = worker.record
        version = record.facts.get("onboard")
        columns.add(
            (record.name, f"on {record.host}", f"onboard {version}" if version else ""),
            (record.shown_state, *record.queues),
            age(record.heartbeat_age_seconds),
            mebibytes(record.facts.get("resident_bytes")),
            (record.device, *_gpu(record.facts)),
            _job(worker.running),
            time_left(worker.running),
        )
    return columns


def _gpu(facts: dict[str, Any]) -> Sequence[str]:
    """Its name and readings, and why some or all are missing."""
    lines = []
    for gpu in facts.get("gpus") or []:
        lines.append(str(gpu.get("name") or ""))
        used, total, busy, warm = (
            gpu.get(key)
            for key in ("memory_used_bytes", "memory_total_bytes", "utilization_ratio", "temperature_celsius")
        )
        if used is not None and total is not None:
            lines.append(f"{mebibytes(used)} of {mebibytes(total)}")
        parts = [f"{busy:.0%} busy" if busy is not None else "", f"{warm:.0f} °C" if warm is not None else ""]
        lines.append(", ".join(filter(None, parts)))
    return [*lines, str(facts.get("gpu_reason") or "")]


def _job(running: RunningJob | None) -> Sequence[str]:
    if running is None:
        return ()
    job = running.attempt.job
    return (f"{job.id} {job.spec.task}", stage_text(running), attempt_text(running))


def stage_text(running: RunningJob) -> str:
    """Where the job is, and for how long: "train for 12 s"."""
    stage, seconds = running.attempt.job.stage, running.attempt.stage_seconds
    return f"{stage.value} for {seconds_text(seconds)}" if stage and seconds is not None else "just claimed"


def attempts_text(job: Job) -> str:
    """Which attempt it is, of how many; nothing before the first."""
    return f"{job.attempt} of {job.max_attempts}" if job.attempt else ""


def attempt_text(running: RunningJob) -> str:
    """The same, as part of a sentence."""
    return f"attempt {attempts_text(running.attempt.job)}"


def time_left(running: RunningJob | None) -> str:
    """The forecast, or that there is none."""
    if running is None:
        return ""
    seconds = running.left.seconds
    return UNKNOWN if seconds is None else f"about {seconds_text(seconds)}"
