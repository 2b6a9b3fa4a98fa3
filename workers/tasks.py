"""What runs in the pool's child: answering a bell. Celery imports this module in parent and child."""

from __future__ import annotations

import logging
import sys
from dataclasses import dataclass
from typing import Any

from celery import current_app, shared_task, signals

from onboard.errors import OnboardError
from onboard.queue import ring_or_warn
from onboard.registry.claims import ClaimRepository
from onboard.services import Services, open_services
from workers.app import BELL
from workers.doorbell import CeleryDoorbell
from workers.plan import WorkerPlan
from workers.shell import Pipeline, load_pipeline, work

_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Child:
    """What the pool's child keeps from job to job."""

    plan: WorkerPlan
    services: Services
    pipeline: Pipeline
    doorbell: CeleryDoorbell


_children: list[_Child] = []


@signals.setup_logging.connect  # type: ignore[untyped-decorator]  # celery has no types
def _log_quietly(**_signal: Any) -> None:
    """Our own lines and nobody else's chatter, on standard error; for parent and child alike."""
    logging.basicConfig(
        stream=sys.stderr, level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s: %(message)s", force=True
    )
    for name in ("onboard", "workers"):
        logging.getLogger(name).setLevel(logging.INFO)
    # a lost child is told by the upkeep, with the job's id and without a trace
    logging.getLogger("celery.worker.request").setLevel(logging.CRITICAL)


@signals.worker_process_init.connect  # type: ignore[untyped-decorator]  # celery has no types
def _start_child(**_signal: Any) -> None:
    plan: WorkerPlan = current_app.conf.onboard_plan
    services = open_services(plan.settings, plan.device)
    child = _Child(plan, services, load_pipeline(plan.pipeline), CeleryDoorbell(plan.settings))
    _children.append(child)
    try:
        child.pipeline.preload(services)
    except OnboardError as error:  # each job will meet and report it
        _logger.warning("Preloading failed: %s %s", error.message, error.remedy)


@shared_task(name=BELL)  # type: ignore[untyped-decorator]  # celery has no types
def answer() -> None:
    """Claim and run one job of this worker's queues, then ring for the next one."""
    child = _children[-1]
    plan = child.plan
    try:
        done = work(
            child.services,
            plan.name,
            plan.queues,
            child.pipeline.run,
            lease_seconds=plan.lease_seconds,
            heartbeat_seconds=plan.heartbeat_seconds,
        )
        if done is not None:
            _ring_for_the_next(child)
    except OnboardError as error:  # the database is away: the reconciler rings again when it is back
        _logger.warning("%s %s", error.message, error.remedy)


def _ring_for_the_next(child: _Child) -> None:
    """Whoever has been busy may have slept through a bell."""
    with child.services.database.read() as session:
        runnable = ClaimRepository(session).runnable()
    for queue in child.plan.queues:
        if queue in runnable:
            ring_or_warn(child.doorbell, queue)
            return
