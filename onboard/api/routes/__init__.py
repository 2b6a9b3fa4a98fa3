"""The routes, one module a group; `ROUTERS` is what the application includes."""

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
    hypernetworks.router,
    priors.router,
    bases.router,
    tokens.router,
    me.router,
    sign_in.router,
)
