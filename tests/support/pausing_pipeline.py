"""The real pipeline in few steps, which pauses when it first enters a stage (`--pipeline support.pausing_pipeline`)."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path
from typing import Any

from onboard.domain.job import Job, Stage
from onboard.domain.progress import Progress
from onboard.pipeline import run as pipeline
from onboard.pipeline import train as training
from onboard.pipeline import tune as tuned
from onboard.registry.services import Services
from onboard.train.settings import FewShotSettings, TuningSettings

PAUSE_SECONDS = 300.0
preload = pipeline.preload


def paused_at(home: Path) -> list[str]:
    """The stages at which a worker of this home has paused, in order."""
    return sorted((file.suffix[1:] for file in home.glob("paused.*")), key=list(Stage).index)


def run(job: Job, services: Services, progress: Progress) -> None:
    """Run a claimed job in few steps, with pauses. The settings change here: the tests import this module too."""
    gentle = partial(TuningSettings, steps=3, most_steps=3, learning_rate=1e-7, z_learning_rate=1e-3)
    vars(training)["FewShotSettings"] = partial(FewShotSettings, steps=3, batch=8)
    vars(tuned)["TuningSettings"] = gentle
    pipeline.run(job, services, _Pausing(progress, services.settings.resolved_home))


class _Pausing:
    def __init__(self, progress: Any, home: Path) -> None:
        self._progress, self._home = progress, home

    def __getattr__(self, name: str) -> Any:
        return getattr(self._progress, name)

    def stage_started(self, stage: Stage) -> None:
        self._progress.stage_started(stage)
        mark = self._home / f"paused.{stage}"
        if mark.exists():
            return
        mark.touch()
        until = time.monotonic() + PAUSE_SECONDS
        while time.monotonic() < until:
            self._progress.raise_if_cancelled_or_fenced()
            time.sleep(0.05)
