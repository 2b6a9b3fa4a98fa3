"""Wake workers of queues that have new work, and start the worker of embedded mode; for commands and HTTP."""

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
    """Return the doorbell; it imports Celery on first use.

    Args:
        outside: for remote callers: errors hide details, which are logged instead.
    """
    from onboard.broker.doorbell import CeleryDoorbell

    bell = CeleryDoorbell(services.settings)
    return _DiscreetDoorbell(bell) if outside else bell


class _DiscreetDoorbell:
    """A doorbell that logs the details of errors and raises errors that remote callers may see."""

    def __init__(self, bell: Doorbell) -> None:
        self._bell = bell

    def ring(self, queue: str) -> None:
        """Send the message once. Raises UnavailableError, InputError."""
        try:
            self._bell.ring(queue)
        except UnavailableError as error:
            _logger.warning("%s %s", error.message, error.remedy)
            raise error.outside from error


def wake(services: Services, queue: str, *, outside: bool = False) -> tuple[str | None, bool]:
    """Wake a worker of a queue with new work; in embedded mode, start one if needed.

    Args:
        outside: whether the warning is for remote callers.

    Returns:
        A warning if the message could not be sent, and whether a worker was started.
    """
    return ring_or_warn(doorbell(services, outside=outside), queue), start_worker(services, queue)


def start_worker(services: Services, queue: str) -> bool:
    """In embedded mode, start a detached worker for the queue unless one is alive. Return whether it was started."""
    if not services.settings.embedded:
        return False
    from onboard.jobs.detached import ensure_worker

    return ensure_worker(services, queue) is not None


def start_webhook_worker(services: Services) -> bool:
    """In embedded mode, start a worker for the webhooks of a change, if there are receivers."""
    return bool(services.settings.webhooks.endpoints) and start_worker(services, DEFAULT_QUEUE)
