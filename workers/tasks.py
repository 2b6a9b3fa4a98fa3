"""What runs in the pool's child: answering a bell. Celery imports this module in parent and child."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from time import sleep
from typing import TYPE_CHECKING, Any, Final

from celery import current_app, shared_task, signals

from onboard.errors import OnboardError
from onboard.jobs.doorbell import ring_or_warn
from onboard.operations.tracing import make_provider, send_spans
from onboard.registry.claims import ClaimRepository
from onboard.registry.services import Services, open_services
from onboard.registry.workers import WorkerRepository
from workers.bells import BELL
from workers.doorbell import CeleryDoorbell
from workers.helping import help_out
from workers.logs import set_up_logging, take_over_loggers
from workers.machine import device_in_use
from workers.plan import WorkerPlan
from workers.shell import Pipeline, load_pipeline, work

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider

_logger = logging.getLogger(__name__)
_PAUSE_SECONDS: Final = 1.0


@dataclass(frozen=True)
class _Child:
    """What the pool's child keeps from job to job."""

    plan: WorkerPlan
    services: Services
    pipeline: Pipeline
    doorbell: CeleryDoorbell
    tracing: TracerProvider | None


_children: list[_Child] = []


@signals.setup_logging.connect  # type: ignore[untyped-decorator]  # celery has no types
def _log_in_our_way(**_signal: Any) -> None:
    """Where somebody listens Celery sets up no log; whoever starts the parent has done so, and `_start_child` does."""


@signals.worker_process_init.connect  # type: ignore[untyped-decorator]  # celery has no types
def _start_child(**_signal: Any) -> None:
    plan: WorkerPlan = current_app.conf.onboard_plan
    set_up_logging(plan.settings.log_format, plan.name)
    try:
        _child()
    except OnboardError as error:  # Celery would go on with a process that can do nothing: each bell tries again
        _logger.warning("Not ready yet: %s %s", error.message, error.remedy)
    take_over_loggers()  # of the libraries that are imported by now


def _child() -> _Child:
    """What this process works with; made when a bell rings if the database was away as the process began."""
    if not _children:
        plan: WorkerPlan = current_app.conf.onboard_plan
        services = open_services(plan.settings, plan.device)
        tracing = make_provider(plan.settings, "worker")
        child = _Child(plan, services, load_pipeline(plan.pipeline), CeleryDoorbell(plan.settings), tracing)
        _children.append(child)
        try:
            child.pipeline.preload(services)
            _say_ready(child)
        except OnboardError as error:  # each job will meet and report it
            _logger.warning("Preloading failed: %s %s", error.message, error.remedy)
    return _children[-1]


def _say_ready(child: _Child) -> None:
    """The parent has no torch: it reads the GPU that it is told of here, and knows here that bells are heard."""
    device = device_in_use(child.plan.device)
    with child.services.database.write() as session:
        workers = WorkerRepository(session)
        workers.ready(child.plan.name)
        if device is not None:
            workers.runs_on(child.plan.name, *device)


@shared_task(name=BELL)  # type: ignore[untyped-decorator]  # celery has no types
def answer() -> None:
    """Claim and run one job of this worker's queues, or help with one that runs; then ring for the next one."""
    try:
        child = _child()
        plan = child.plan
        done = work(
            child.services,
            plan.name,
            plan.queues,
            child.pipeline.run,
            lease_seconds=plan.lease_seconds,
            heartbeat_seconds=plan.heartbeat_seconds,
            tracing=child.tracing,
        )
        helped = done is None and help_out(
            child.services, plan.name, plan.queues, plan.lease_seconds, plan.heartbeat_seconds
        )
        if done is not None or helped:
            _ring_for_the_next(child)
            send_spans(child.tracing)
    except OnboardError as error:  # the database is away: the reconciler rings again when it is back
        _logger.warning("%s %s", error.message, error.remedy)
        sleep(_PAUSE_SECONDS)  # many bells may wait, one per job that was submitted: not all of them in vain


def _ring_for_the_next(child: _Child) -> None:
    """Whoever has been busy may have slept through a bell."""
    with child.services.database.read() as session:
        runnable = ClaimRepository(session).runnable()
    for queue in child.plan.queues:
        if queue in runnable:
            ring_or_warn(child.doorbell, queue)
            return
