"""The pages that `onboard serve` shows in a browser; `ROUTERS` is what the application includes."""

from __future__ import annotations

from typing import Final

from fastapi import APIRouter

from onboard.api.pages import assets, job, jobs, live, overview, task, tasks

ROUTERS: Final[tuple[APIRouter, ...]] = (
    assets.router,
    live.router,
    overview.router,
    jobs.router,
    job.router,
    tasks.router,
    task.router,
)
