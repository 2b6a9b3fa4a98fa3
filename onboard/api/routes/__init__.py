"""The API routes, one module per group; the application includes `ROUTERS`."""

from __future__ import annotations

from typing import Final

from fastapi import APIRouter

from onboard.api.routes import (
    aliases,
    bases,
    carry,
    changes,
    check,
    compare,
    description,
    drift,
    embeddings,
    health,
    hypernetworks,
    jobs,
    label_studio,
    lineage,
    me,
    predict,
    priors,
    queue,
    sign_in,
    tasks,
    tokens,
    workers,
)

ROUTERS: Final[tuple[APIRouter, ...]] = (
    health.router,
    description.router,
    check.router,
    jobs.router,
    queue.router,
    workers.router,
    predict.router,
    tasks.router,
    changes.router,
    label_studio.router,
    embeddings.router,
    aliases.router,
    compare.router,
    carry.router,
    lineage.router,
    drift.router,
    hypernetworks.router,
    priors.router,
    bases.router,
    tokens.router,
    me.router,
    sign_in.router,
)
