"""Ringing for queues that got work, and starting the embedded default's worker: for commands and for HTTP."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from onboard.errors import UnavailableError
from onboard.jobs.doorbell import DEFAULT_QUEUE, ring_or_warn

if TYPE_CHECKING:
    from onboard.jobs.doorbell import Doorbell
    from onboard.registry.services import Services

_logger = logging.getLogger(__name__)


def doorbell(services: Services, *, outside: bool = False) -> Doorbell:
    """The real doorbell; Celery is imported when it rings.

    Args:
        outside: whether those elsewhere are told how it went: then the reason is for the log alone.
    """
    from onboard.broker.doorbell import CeleryDoorbell

    bell = CeleryDoorbell(services.settings)
    return _DiscreetDoorbell(bell) if outside else bell


class _DiscreetDoorbell:
    """Raises what those elsewhere may know, and logs the rest.

    Args:
        bell: the one that rings.
    """

    def __init__(self, bell: Doorbell) -> None:
        self._bell = bell

    def ring(self, queue: str) -> None:
        """Ring once. Raises UnavailableError, InputError."""
        try:
            self._bell.ring(queue)
        except UnavailableError as error:
            _logger.warning("%s %s", error.message, error.remedy)
            raise error.outside from error


def wake(services: Services, queue: str, *, outside: bool = False) -> tuple[str | None, bool]:
    """Ring for a queue that got work, and see that the embedded default has a worker.

    Args:
        outside: whether the warning is for those elsewhere.

    Returns:
        A warning where the bell could not be rung, and whether a worker was started.
    """
    return ring_or_warn(doorbell(services, outside=outside), queue), start_worker(services, queue)


def start_worker(services: Services, queue: str) -> bool:
    """On the embedded default: start a detached worker for the queue unless one lives. Returns whether it did."""
    if not services.settings.embedded:
        return False
    from onboard.jobs.detached import ensure_worker

    return ensure_worker(services, queue) is not None


def start_webhook_worker(services: Services) -> bool:
    """On the embedded default: start a worker for the webhooks of what was just changed, if anybody is told."""
    return bool(services.settings.webhooks.endpoints) and start_worker(services, DEFAULT_QUEUE)
