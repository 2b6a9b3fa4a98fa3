"""The thread of a worker that delivers webhooks, so that no endpoint ever delays a heartbeat."""

from __future__ import annotations

import contextlib
import logging
import threading
from typing import Final

from onboard.domain.webhook import Webhooks
from onboard.errors import OnboardError
from onboard.operations.webhooks import deliver
from onboard.operations.webhooks.deliver import LEASE
from onboard.registry.database import Database
from onboard.registry.leases import LeaseRepository

_logger = logging.getLogger(__name__)
_ROUND_SECONDS: Final = 2.0
_PAUSE_SECONDS: Final = 10.0  # after a failure, a database that is away for example


class WebhookThread(threading.Thread):
    """Delivers until the worker is over; one worker of a deployment at a time has anything to deliver.

    Args:
        over: set when the Celery worker has ended.
    """

    def __init__(self, database: Database, webhooks: Webhooks, holder: str, over: threading.Event) -> None:
        super().__init__(name="webhooks", daemon=True)
        self._database = database
        self._webhooks = webhooks
        self._holder = holder
        self._over = over

    def run(self) -> None:
        """Go round until the worker is over. Nothing that goes wrong ends this thread."""
        pause = _ROUND_SECONDS
        while not self._over.wait(pause):
            pause = _PAUSE_SECONDS
            try:
                deliver(self._database, self._webhooks, self._holder, self._over.is_set)
                pause = _ROUND_SECONDS
            except OnboardError as error:
                _logger.warning("Webhooks: %s", error.message)
            except Exception:  # the thread's outermost edge: without it deliveries would stop
                _logger.exception("Webhooks could not be delivered; trying again")
        with contextlib.suppress(OnboardError), self._database.write() as session:  # it runs out by itself
            LeaseRepository(session).give_back(LEASE, self._holder)
