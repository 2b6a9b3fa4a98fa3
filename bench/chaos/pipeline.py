"""The real pipeline, with so few steps that a job takes a fraction of a second (`--pipeline bench.chaos.pipeline`)."""

from __future__ import annotations

from functools import partial

from bench.chaos.poison import act, is_poison
from onboard.domain.job import Job, Stage
from onboard.domain.progress import Progress
from onboard.pipeline import run as pipeline
from onboard.pipeline import train as training
from onboard.registry.services import Services
from onboard.train.settings import FewShotSettings

vars(training)["FewShotSettings"] = partial(FewShotSettings, steps=3, batch=8)
preload = pipeline.preload


def run(job: Job, services: Services, progress: Progress) -> None:
    """Run a claimed job; one that is poison does its harm."""
    if is_poison(job.spec.task):
        progress.stage_started(Stage.TRAIN)
        act(job.spec.task)
    pipeline.run(job, services, progress)
