"""The pages that `onboard serve` shows in a browser; the application includes `ROUTERS`."""

from __future__ import annotations

from typing import Final

from fastapi import APIRouter

from onboard.api.pages import (
    access,
    assets,
    changes,
    compare,
    drift,
    hypernetworks,
    job,
    jobs,
    live,
    overview,
    priors,
    reference,
    submit,
    task,
    task_map,
    tasks,
    webhooks,
)

ROUTERS: Final[tuple[APIRouter, ...]] = (
    assets.router,
    live.router,
    overview.router,
    jobs.router,
    job.router,
    tasks.router,
    task.router,
    changes.router,
    compare.router,
    drift.router,
    task_map.router,
    hypernetworks.router,
    priors.router,
    submit.router,
    access.router,
    webhooks.router,
    reference.router,
)
