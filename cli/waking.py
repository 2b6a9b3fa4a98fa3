"""Ringing for queues that got work, and starting the embedded default's worker; what came of it is said."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cli.output import say
from onboard.jobs import waking
from onboard.operations.worker_logs import log_file

if TYPE_CHECKING:
    from onboard.registry.services import Services


def wake(services: Services, queue: str) -> None:
    """Ring for a queue that got work, and see that the embedded default has a worker."""
    warning, started = waking.wake(services, queue)
    if warning:
        say(f"warning: {warning}")
    _tell(services, started)


def start_worker(services: Services, queue: str) -> None:
    """On the embedded default: start a detached worker for the queue unless one lives."""
    _tell(services, waking.start_worker(services, queue))


def start_webhook_worker(services: Services) -> None:
    """On the embedded default: start a worker for the webhooks of what was just changed, if anybody is told."""
    _tell(services, waking.start_webhook_worker(services))


def _tell(services: Services, started: bool) -> None:
    if started:
        say(f"started a worker, log: {log_file(services.settings.resolved_home)}")
