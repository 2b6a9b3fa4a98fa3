"""The work of one worker for the whole service: the reconciler, retention, and refitting priors."""

from __future__ import annotations

import logging
from typing import Final

from onboard import __version__
from onboard.domain.release import release_name
from onboard.jobs.doorbell import Doorbell
from onboard.operations.retention import retain
from onboard.registry.claims import ClaimRepository
from onboard.registry.schema import is_current
from onboard.registry.services import Services
from workers.every import Every
from workers.plan import WorkerPlan
from workers.reconciler import reconcile
from workers.refitting import Refitting

_RETENTION_SECONDS: Final = 3600.0  # how often rows that are kept no longer are looked for
_logger = logging.getLogger(__name__)


class Housekeeping:
    """A round every `reconcile_seconds`; of several workers only the one that holds the lease does all of it.

    Args:
        doorbell: rung for jobs whose message was lost.
    """

    def __init__(self, services: Services, plan: WorkerPlan, doorbell: Doorbell) -> None:
        self._services = services
        self._plan = plan
        self._doorbell = doorbell
        self._round = Every(plan.reconcile_seconds)
        self._release = Every(plan.heartbeat_seconds)
        self._outdated = Every(_RETENTION_SECONDS)
        self._is_retaining = False
        self._refitting = Refitting(services)
        self._reported_release: int | None = None

    def look(self) -> None:
        """The round, if it is due."""
        if not self._round.due():
            return
        lease_seconds = 3 * self._plan.reconcile_seconds
        is_mine = reconcile(self._services.database, self._doorbell, self._plan.name, lease_seconds)
        if self._release.due():
            self._warn_of_newer_jobs()
        if is_mine and is_current(self._services.database):  # rows of tables that it does not know may refer to others
            self._retain()
            self._refitting.look()

    def end(self) -> None:
        """The worker has left."""
        self._refitting.end()

    def _warn_of_newer_jobs(self) -> None:
        """Once per release: jobs of its queues that this worker leaves to newer ones."""
        with self._services.database.read() as session:
            needed = ClaimRepository(session).too_new(self._plan.queues)
        if needed is not None and needed != self._reported_release:
            _logger.warning(
                "Jobs are waiting for a worker of onboard %s or later; this one has %s and ignores them. "
                "Install that version here: pip install -U onboard",
                release_name(needed),
                __version__,
            )
        self._reported_release = needed

    def _retain(self) -> None:
        """A batch a round, so that the heartbeat never waits for long; once nothing is left, not for an hour."""
        if self._outdated.due():
            self._is_retaining = True
        if not self._is_retaining:
            return
        gone = retain(self._services.database, self._services.settings)
        self._is_retaining = bool(gone)
        if gone:
            _logger.info("Retention: deleted %s", ", ".join(f"{count} {table}" for table, count in gone.items()))
