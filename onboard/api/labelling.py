"""The labeling state of a server: learners of the tasks that people label, and timers that publish after a pause."""

from __future__ import annotations

import logging
import threading
from contextlib import nullcontext
from itertools import product
from typing import TYPE_CHECKING, Final

from onboard.domain.access import acting, current_actor
from onboard.errors import OnboardError
from onboard.jobs.waking import doorbell, start_worker
from onboard.storage.cache import Cache

if TYPE_CHECKING:
    from onboard.api.prediction_queue import PredictionQueue
    from onboard.domain.job import Job
    from onboard.jobs.labelling.learner import Learner
    from onboard.registry.services import Services

QUIET_SECONDS: Final = 60.0  # seconds without a new annotation, after which the annotations are published
MOST_TASKS: Final = 8  # number of tasks with texts in memory
_logger = logging.getLogger(__name__)


class Labelling:
    """The tasks that are being labeled through this process.

    Args:
        predictions: its model computes the features of texts.
    """

    def __init__(self, services: Services, predictions: PredictionQueue) -> None:
        self._services, self._predictions = services, predictions
        self._learners = Cache[tuple[str, bool, bool], "Learner"](MOST_TASKS)
        self._timers: dict[str, threading.Timer] = {}
        self._guard, self._ended = threading.Lock(), False

    def learner(self, task: str, *, pairs: bool, several: bool) -> Learner:
        """Return the learner that answers the texts of a task."""
        from onboard.jobs.labelling.learner import Learner

        read = self._predictions.features

        def made() -> Learner:
            return Learner(self._services, task, read, pairs=pairs, several=several)

        return self._learners.get((task, pairs, several), made)

    def refit_seconds(self, task: str) -> float | None:
        """Return the duration of the newest refit of the task in this process; None without one."""
        for pairs, several in product((False, True), repeat=2):
            if (learner := self._learners.find((task, pairs, several))) is not None:
                return learner.refit_seconds
        return None

    def publish_when_quiet(self, task: str, owner: str, *, again: bool = True) -> None:
        """Publish the annotations, the readout alone, once none has arrived for a while.

        Args:
            owner: the requester, for the audit log.
            again: restart the wait if it has begun.
        """
        actor = current_actor()

        def publish() -> None:
            with self._guard:
                if self._timers.get(task) is timer:
                    del self._timers[task]
            try:
                with acting(actor) if actor else nullcontext():
                    self.publish(task, owner, fast=True)
            except OnboardError as error:
                _logger.warning("The annotations of %s were not published: %s %s", task, error.message, error.remedy)
            except Exception:  # a thread's outermost edge
                _logger.exception("The annotations of %s were not published.", task)

        timer = threading.Timer(QUIET_SECONDS, publish)
        timer.daemon = True
        self._start(task, timer, again=again)

    def publish(self, task: str, owner: str, *, fast: bool) -> Job | None:
        """Publish the annotations now; as `onboard.jobs.labelling.publishing.publish`."""
        from onboard.jobs.labelling.publishing import publish

        services = self._services
        job = publish(services, doorbell(services, outside=True), task, fast=fast, owner=owner)
        if job is not None and not job.state.finished:
            start_worker(services, job.queue)
        return job

    def end(self) -> None:
        """Publish nothing any more. Annotations that wait are published after the next one, by any process."""
        with self._guard:
            self._ended = True
            for timer in self._timers.values():
                timer.cancel()

    def _start(self, task: str, timer: threading.Timer, *, again: bool) -> None:
        with self._guard:
            before = self._timers.get(task)
            if self._ended or (before is not None and not again):
                return
            if before is not None:
                before.cancel()
            self._timers[task] = timer
            timer.start()
