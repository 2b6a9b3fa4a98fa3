"""The real pipeline, with so few steps that a job takes a fraction of a second (`--pipeline bench.chaos.pipeline`)."""

from __future__ import annotations

from functools import partial

from onboard.pipeline import run as pipeline
from onboard.train.settings import FewShotSettings

vars(pipeline)["FewShotSettings"] = partial(FewShotSettings, steps=3, batch=8)
preload = pipeline.preload
run = pipeline.run
