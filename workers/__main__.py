"""`python -m workers`: what the detached start runs; people use `onboard worker`."""

from __future__ import annotations

import argparse
import json
import logging
import sys
from dataclasses import replace
from pathlib import Path

from onboard.errors import OnboardError
from onboard.jobs.detached import SETTINGS_FROM_STDIN
from onboard.jobs.doorbell import DEFAULT_QUEUE
from onboard.operations.processes import worker_name
from onboard.settings import Settings
from workers.plan import WorkerPlan


def main(arguments: list[str] | None = None) -> int:
    """Run a worker. Returns the exit status."""
    from workers.logs import set_up_logging
    from workers.run import run_worker

    asked = _parser().parse_args(arguments)
    settings = Settings(**json.load(sys.stdin)) if asked.settings_from_stdin else Settings()
    plan = WorkerPlan(
        settings=settings,
        name=asked.name or worker_name(),
        queues=tuple(asked.queue or (DEFAULT_QUEUE,)),
        device=asked.device or settings.device,
        pipeline=asked.pipeline,
        idle_exit_seconds=asked.idle_exit,
        alive_file=asked.alive_file,
        is_program=True,
    )
    timings = {key: value for key in _TIMINGS if (value := getattr(asked, key)) is not None}
    set_up_logging(settings.log_format, plan.name)
    try:
        return run_worker(replace(plan, **timings))
    except OnboardError as error:
        logging.getLogger("workers").error("%s %s", error.message, error.remedy)
        return error.exit_code


_TIMINGS = (
    "lease_seconds", "heartbeat_seconds", "cancel_seconds", "reconcile_seconds", "deaf_seconds", "drain_seconds"
)  # fmt: skip


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m workers", description="Run one worker.")
    parser.add_argument("--queue", action="append", help="queue to serve; repeatable (default: default)")
    parser.add_argument("--device", default="", help="auto, cpu, cuda or cuda:N")
    parser.add_argument("--idle-exit", type=float, metavar="SECONDS", help="exit after this many seconds without work")
    parser.add_argument("--alive-file", type=Path, metavar="FILE", help="file to touch while the worker is healthy")
    parser.add_argument("--name", default="", help="unique name of the worker")
    parser.add_argument(SETTINGS_FROM_STDIN, action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--pipeline", default="onboard.pipeline.run", help=argparse.SUPPRESS)
    for timing in _TIMINGS:
        parser.add_argument(f"--{timing.replace('_', '-')}", type=float, help=argparse.SUPPRESS)
    return parser


if __name__ == "__main__":
    sys.exit(main())
