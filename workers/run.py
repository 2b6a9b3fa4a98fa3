"""One worker from start to end: the Celery parent with its pool of one child, and the upkeep."""

from __future__ import annotations

import logging
import os
import signal
import threading
import warnings
from contextlib import closing, suppress
from dataclasses import replace
from functools import partial
from typing import Any, Final

from onboard import __version__
from onboard.broker.app import broker_queue
from onboard.broker.doorbell import CeleryDoorbell
from onboard.broker.trouble import AWAY
from onboard.domain.names import require_name
from onboard.domain.worker import WorkerState
from onboard.errors import OnboardError, UnavailableError
from onboard.operations.processes import host_name
from onboard.operations.tracing import require_tracing
from onboard.registry.leases import LeaseRepository
from onboard.registry.services import Services, open_services
from onboard.registry.workers import WorkerRepository
from workers.app import make_worker_app
from workers.children import Children
from workers.device import require_device
from workers.hearing import Hearing
from workers.last_words import LastWords, usual_stderr
from workers.logs import quiet_celery
from workers.machine import facts
from workers.plan import WorkerPlan
from workers.pulse import shared_memory
from workers.reconciler import LEASE
from workers.recovery import recover, take_over
from workers.upkeep import Upkeep
from workers.webhooks import WebhookThread

_logger = logging.getLogger(__name__)
_LAST_MESSAGE_SECONDS: Final = 15.0  # an endpoint has 10 to answer


def run_worker(plan: WorkerPlan) -> int:
    """Run a worker in this process (its main thread) until SIGTERM, Ctrl-C, draining or idleness ends it.

    Returns:
        The exit status: 0 unless Celery could not start.

    Raises:
        InputError: the name of a queue or of the device is not one.
        ConflictError: the schema is not this code's, or a live worker has this name.
        UnavailableError: the database cannot be reached, the broker refuses us, or the device is not there.
        NotFoundError: traces are enabled, but the extra `otel` is not installed.
    """
    plan = replace(plan, pulse=shared_memory(), stderr=usual_stderr())
    for queue in plan.queues:
        require_name(queue, "queue name")
    require_device(plan.device)
    require_tracing(plan.settings)
    with closing(open_services(plan.settings, plan.device)) as services:
        if not plan.settings.embedded:
            _require_broker(plan)
        hearing = Hearing(services.database, plan, CeleryDoorbell(plan.settings))
        hearing.go_on(os.getpid())
        _enter(services, plan, hearing)
        _logger.info("Takes jobs from %s on %s, onboard %s", ", ".join(plan.queues), plan.device, __version__)
        try:
            return _run_celery(services, plan, hearing)
        finally:
            _leave(services, plan)
            _logger.info("Has left")


def _require_broker(plan: WorkerPlan) -> None:
    """A broker that is away may come; a wrong password stays wrong."""
    try:
        CeleryDoorbell(plan.settings).ring(plan.queues[0])  # a message without work is harmless
    except UnavailableError as error:
        if error.data.get("trouble") != AWAY:
            raise
        _logger.warning("%s Trying again until it succeeds.", error.message)


def _enter(services: Services, plan: WorkerPlan, hearing: Hearing) -> None:
    seen = facts({os.getpid()}, plan.device, plan.device)  # a GPU may take its time: not while the database is locked
    with services.database.write() as session:
        if plan.settings.embedded:
            recover(session)
        take_over(session, plan.name)
        WorkerRepository(session).enter(
            plan.name,
            WorkerState.STARTING,
            queues=plan.queues,
            host=host_name(),
            pid=os.getpid(),
            device=plan.device,
            facts={**seen, **hearing.facts()},
        )


def _leave(services: Services, plan: WorkerPlan) -> None:
    try:
        with services.database.write() as session:
            WorkerRepository(session).stop(plan.name)
            LeaseRepository(session).give_back(LEASE, plan.name)
    except OnboardError as error:  # its row goes stale by itself
        _logger.warning("The worker could not sign off: %s", error.message)


def _run_celery(services: Services, plan: WorkerPlan, hearing: Hearing) -> int:
    from celery import signals

    from workers.pool import bell_in_hand, process_ids

    worker = _celery_worker(plan)

    def leave() -> None:
        os.kill(os.getpid(), signal.SIGTERM)  # Celery's handler begins the warm shutdown in the main thread

    words = LastWords([descriptor for descriptor in (plan.pulse, plan.stderr) if descriptor is not None])
    words.listen()
    children = Children(plan, partial(process_ids, worker), words)
    upkeep = Upkeep(
        services, plan, CeleryDoorbell(plan.settings), hearing, children, partial(bell_in_hand, worker), leave
    )

    def on_shutting_down(**_signal: Any) -> None:
        upkeep.stopping.set()

    signals.worker_shutting_down.connect(on_shutting_down)
    upkeep.start()
    webhooks = _deliver_webhooks(services, plan, upkeep.over)
    try:
        worker.start()
    finally:
        upkeep.over.set()
        upkeep.join()
        if webhooks is not None:
            webhooks.join(_LAST_MESSAGE_SECONDS)  # it gives its lease back itself, when its last message is sent
        signals.worker_shutting_down.disconnect(on_shutting_down)
    if worker.exitcode:
        _say_why(services, plan, children)
    return int(worker.exitcode or 0)


def _say_why(services: Services, plan: WorkerPlan, children: Children) -> None:
    """Celery has given up: in its own log, and in the row of the worker."""
    trouble = children.collapse()
    if trouble is None:
        return
    _logger.error("%s %s The worker exits.", trouble.message, trouble.remedy)
    with suppress(OnboardError), services.database.write() as session:
        WorkerRepository(session).heartbeat(plan.name, {"trouble": trouble.to_json()})


def _celery_worker(plan: WorkerPlan) -> Any:
    # Celery warns whoever works as root about unpickling; nothing here is pickled by clients (JSON only)
    warnings.filterwarnings("ignore", message=".*superuser privileges")
    quiet_celery()
    return make_worker_app(plan).Worker(
        hostname=f"{plan.name}@onboard",
        queues=[broker_queue(queue) for queue in plan.queues],
        quiet=True,
        without_gossip=True,
        without_mingle=True,
        without_heartbeat=True,
        loglevel="WARNING",
    )


def _deliver_webhooks(services: Services, plan: WorkerPlan, over: threading.Event) -> WebhookThread | None:
    """The thread that delivers webhooks, if there are receivers."""
    webhooks = plan.settings.webhooks
    if not webhooks.endpoints:
        return None
    thread = WebhookThread(services.database, webhooks, plan.name, over)
    thread.start()
    return thread
