"""The Celery task that runs in the pool's child. Celery imports this module in parent and child."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from time import sleep
from typing import TYPE_CHECKING, Any, Final

from celery import current_app, shared_task, signals

from onboard.broker.bells import BELL
from onboard.broker.doorbell import CeleryDoorbell
from onboard.domain.job import JobState
from onboard.domain.worker import Trouble
from onboard.errors import OnboardError, UnavailableError
from onboard.jobs.doorbell import ring_or_warn
from onboard.operations.tracing import make_provider, send_spans
from onboard.registry.claims import ClaimRepository
from onboard.registry.services import Services, open_services
from onboard.registry.workers import WorkerRepository
from workers.faults import TroubleError, broken_machine, passing_trouble
from workers.helping import help_out
from workers.last_words import speak_up
from workers.logs import set_up_logging, take_over_loggers
from workers.machine import device_in_use
from workers.plan import WorkerPlan
from workers.pulse import Pulse
from workers.shell import Pipeline, load_pipeline, work

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider

_logger = logging.getLogger(__name__)
_PAUSE_SECONDS: Final = 1.0
_IN_LOG: Final = "This is a bug. The traceback is in the log of the worker."


@dataclass(frozen=True)
class _Child:
    """The state that the pool's child keeps between jobs."""

    plan: WorkerPlan
    services: Services
    pipeline: Pipeline
    doorbell: CeleryDoorbell
    tracing: TracerProvider | None


_children: list[_Child] = []
_pulse: Final = Pulse(None)


@signals.setup_logging.connect  # type: ignore[untyped-decorator]  # celery has no types
def _log_in_our_way(**_signal: Any) -> None:
    """Where somebody listens Celery sets up no log; whoever starts the parent has done so, and `_start_child` does."""


@signals.worker_process_init.connect  # type: ignore[untyped-decorator]  # celery has no types
def _start_child(**_signal: Any) -> None:
    plan: WorkerPlan = current_app.conf.onboard_plan
    if plan.stderr is not None:
        speak_up(plan.stderr)
    set_up_logging(plan.settings.log_format, plan.name)
    _pulse.descriptor = plan.pulse
    _pulse.start()
    try:
        _child()
    except UnavailableError as error:  # Celery would go on with a process that can do nothing: each bell tries again
        _logger.warning("Not ready yet: %s %s", error.message, error.remedy)
    except TroubleError as error:
        _report(error.trouble)
    take_over_loggers()  # of the libraries that are imported by now


def _child() -> _Child:
    """The services of this process; created at the next message if the database was unavailable at its start.

    Raises:
        UnavailableError: it still is.
        TroubleError: something that every job needs cannot be loaded.
    """
    if not _children:
        try:
            _children.append(_loaded(current_app.conf.onboard_plan))
        except UnavailableError:
            raise
        except OnboardError as error:
            raise TroubleError(Trouble(error.message, error.remedy, stops=True)) from error
        except Exception as error:  # the process's outermost edge: the parent replaces it after a while
            _logger.exception("The worker's process cannot start")
            raise TroubleError(_unforeseen(error)) from error
        _pulse.say(None, loaded=True)
    return _children[-1]


def _unforeseen(error: Exception) -> Trouble:
    passing = passing_trouble(error)
    if passing is not None:
        return Trouble(passing.message, passing.remedy, stops=True)
    return broken_machine(error) or Trouble(f"{type(error).__name__}: {error}", _IN_LOG, stops=True)


def _loaded(plan: WorkerPlan) -> _Child:
    services = open_services(plan.settings, plan.device)
    try:
        tracing = make_provider(plan.settings, "worker")
        child = _Child(plan, services, load_pipeline(plan.pipeline), CeleryDoorbell(plan.settings), tracing)
        child.pipeline.preload(services)
        _say_ready(child)
    except BaseException:
        services.close()
        raise
    return child


def _report(trouble: Trouble) -> None:
    """This worker takes no jobs; its parent replaces this process after a while, to try again."""
    _logger.error("This worker takes no jobs: %s %s", trouble.message, trouble.remedy)
    _pulse.say(trouble)


def _say_ready(child: _Child) -> None:
    """The parent has no torch: it reads the GPU that is passed to it here, and learns here that messages arrive."""
    device = device_in_use(child.plan.device)
    with child.services.database.write() as session:
        workers = WorkerRepository(session)
        workers.ready(child.plan.name)
        if device is not None:
            workers.runs_on(child.plan.name, *device)


@shared_task(name=BELL)  # type: ignore[untyped-decorator]  # celery has no types
def answer() -> None:
    """Claim and run one job of this worker's queues, or help with one that runs; then ring for the next one."""
    if _pulse.trouble is not None and _pulse.trouble.stops:
        return
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
        if done is not None and done.state is JobState.SUCCEEDED:
            _pulse.say(None)
        if done is not None or helped:
            _ring_for_the_next(child)
            send_spans(child.tracing)
    except TroubleError as error:
        _ring_for_others(error.trouble)
    except OnboardError as error:  # the database is away: the reconciler rings again when it is back
        _logger.warning("%s %s", error.message, error.remedy)
        sleep(_PAUSE_SECONDS)  # many bells may wait, one per job that was submitted: not all of them in vain


def _ring_for_others(trouble: Trouble) -> None:
    """Its job waits for them."""
    if trouble.stops:
        _report(trouble)
    else:
        _pulse.say(trouble)
    if _children:
        _ring_for_the_next(_children[-1])


def _ring_for_the_next(child: _Child) -> None:
    """A busy worker may have missed a message."""
    with child.services.database.read() as session:
        runnable = ClaimRepository(session).runnable()
    for queue in child.plan.queues:
        if queue in runnable:
            ring_or_warn(child.doorbell, queue)
            return
