"""Ringing for queues that got work, and starting the embedded default's worker: for commands and for HTTP."""

from __future__ import annotations

from typing import TYPE_CHECKING

from onboard.jobs.doorbell import DEFAULT_QUEUE, ring_or_warn

if TYPE_CHECKING:
    from onboard.jobs.doorbell import Doorbell
    from onboard.services import Services


def doorbell(services: Services) -> Doorbell:
    """The real doorbell; Celery is imported when it rings."""
    from workers.doorbell import CeleryDoorbell

    return CeleryDoorbell(services.settings)


def wake(services: Services, queue: str) -> tuple[str | None, bool]:
    """Ring for a queue that got work, and see that the embedded default has a worker.

    Returns:
        A warning where the bell could not be rung, and whether a worker was started.
    """
    return ring_or_warn(doorbell(services), queue), start_worker(services, queue)


def start_worker(services: Services, queue: str) -> bool:
    """On the embedded default: start a detached worker for the queue unless one lives. Returns whether it did."""
    if not services.settings.embedded:
        return False
    from workers.detached import ensure_worker

    return ensure_worker(services, queue) is not None


def start_webhook_worker(services: Services) -> bool:
    """On the embedded default: start a worker for the webhooks of what was just changed, if anybody is told."""
    return bool(services.settings.webhooks.endpoints) and start_worker(services, DEFAULT_QUEUE)
