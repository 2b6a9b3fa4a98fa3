"""Pipelines without a model, for workers in other processes; `options` say what to do."""

from __future__ import annotations

import ctypes
import os
import signal
import time
from pathlib import Path

from onboard.bases import find_base
from onboard.domain.job import Job, Stage
from onboard.domain.progress import Progress
from onboard.errors import BaseDamagedError, UnavailableError
from onboard.registry.services import Services
from onboard.registry.versions import VersionRepository
from support.registry_samples import sample_task, sample_version


def preload(services: Services) -> None:
    """Nothing to load, but for a file `broken` in the home, which stands for a base that cannot be loaded."""
    if (services.settings.resolved_home / "broken").exists():
        raise BaseDamagedError("hypernetwork.safetensors is not readable as safetensors.", "Restore it.")


def run(job: Job, services: Services, progress: Progress) -> None:
    """Train for `options["seconds"]`, then publish. `mark` is a folder that counts the attempts."""
    options = job.spec.options
    progress.stage_started(Stage.TRAIN)
    if "mark" in options:
        (Path(options["mark"]) / f"{job.id}-{job.attempt}-{os.getpid()}").touch()
    if options.get("crash") or options.get("crash_until_attempt", 0) > job.attempt:
        os.kill(os.getpid(), signal.SIGKILL)
    if "named_base" in options:
        find_base(options["named_base"])
    if "fault" in options:
        raise RuntimeError(options["fault"])
    if options.get("unavailable_until_attempt", 0) > job.attempt:
        raise UnavailableError("The hub cannot be reached.")
    if options.get("hang_until_attempt", 0) > job.attempt:
        _hang(options["hang"])
    deadline = time.monotonic() + float(options.get("seconds", 0.0))
    while time.monotonic() < deadline:
        progress.raise_if_cancelled_or_fenced()
        time.sleep(0.02)
    progress.stage_finished(Stage.TRAIN, 0.1, {"loss": 0.5})
    with services.database.write() as session:
        VersionRepository(session).publish(
            sample_version(job.spec.task, job=job.id),
            sample_task(job.spec.task),
            attempt=job.attempt,
            result={"state": "succeeded"},
        )


def _hang(how: str) -> None:
    """As native code does: for ever, without a checkpoint; "alone" lets other threads go on, "whole" does not."""
    if how == "whole":
        ctypes.PyDLL(None).sleep(3600)  # keeps the interpreter's lock
    time.sleep(3600)
