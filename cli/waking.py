"""Ringing for queues that got work, and starting the embedded default's worker."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cli.output import say

if TYPE_CHECKING:
    from onboard.queue import Doorbell
    from onboard.services import Services


def doorbell(services: Services) -> Doorbell:
    """The real doorbell; Celery is imported when it rings."""
    from workers.doorbell import CeleryDoorbell

    return CeleryDoorbell(services.settings)


def wake(services: Services, queue: str) -> None:
    """Ring for a queue that got work, and see that the embedded default has a worker."""
    from onboard.queue import ring_or_warn

    warning = ring_or_warn(doorbell(services), queue)
    if warning:
        say(f"warning: {warning}")
    start_worker(services, queue)


def start_worker(services: Services, queue: str) -> None:
    """On the embedded default: start a detached worker for the queue unless one lives."""
    if not services.settings.embedded:
        return
    from workers.detached import ensure_worker
    from workers.logs import log_file

    if ensure_worker(services, queue):
        say(f"started a worker, log: {log_file(services.settings.resolved_home)}")


def start_webhook_worker(services: Services) -> None:
    """On the embedded default: start a worker for the webhooks of what was just changed, if anybody is told."""
    if services.settings.webhooks.endpoints:
        from onboard.queue import DEFAULT_QUEUE

        start_worker(services, DEFAULT_QUEUE)
