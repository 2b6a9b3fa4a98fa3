"""Refit priors in a separate process, one at a time, so that no job or heartbeat waits for it.

`python -m workers.refitting` is that process; people use `onboard prior refit`.
"""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import time
from contextlib import closing, suppress
from typing import Final

from onboard.errors import OnboardError
from onboard.registry.priors import PriorRepository
from onboard.registry.services import Services, open_services
from onboard.settings import Settings, environment_of_worker

_PAUSE_SECONDS: Final = 30.0  # after one that failed
_REASON: Final = "tasks were published or deleted"
_logger = logging.getLogger(__name__)


class Refitting:
    """Checks whether priors are out of date, and refits them."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._process: subprocess.Popen[bytes] | None = None
        self._change: tuple[int, float] | None = None  # that the last process was started for
        self._not_before = 0.0

    def look(self) -> None:
        """Start a process where something was published or deleted since the last one; returns at once."""
        if self._runs() or time.monotonic() < self._not_before:
            return
        with self._services.database.read() as session:
            priors = PriorRepository(session)
            change = priors.last_change()
            if change == self._change or not priors.may_be_due():
                return
        self._change, self._process = change, self._start()

    def end(self) -> None:
        """Stop because the worker exits; the next one finishes the work."""
        if self._runs() and self._process is not None:
            with suppress(ProcessLookupError):
                self._process.kill()
            self._process.wait()

    def _runs(self) -> bool:
        if self._process is None:
            return False
        status = self._process.poll()
        if status:
            self._change, self._not_before = None, time.monotonic() + _PAUSE_SECONDS
        if status is not None:
            self._process = None
        return status is None

    def _start(self) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [sys.executable, "-m", "workers.refitting"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
            env=environment_of_worker(self._services.settings),
        )  # fmt: skip
        assert process.stdin is not None
        with suppress(BrokenPipeError), process.stdin as pipe:
            pipe.write(json.dumps(self._services.settings.for_worker()).encode())
        return process


def main() -> int:
    """Fit the priors of every base that is here again; its settings come from standard input. Returns the status."""
    from onboard.hypernetworks.prior.refit import refit_all
    from workers.logs import set_up_logging

    os.nice(10)
    settings = Settings(**json.load(sys.stdin))
    if settings.embedded and not settings.resolved_home.exists():
        return 0  # someone deleted ONBOARD_HOME meanwhile
    set_up_logging(settings.log_format, "refitting")
    try:
        with closing(open_services(settings)) as services:
            for version in refit_all(services, _REASON):
                _logger.info("Prior (%s) v%d: %d lessons", version.form, version.version, version.lessons)
    except OnboardError as error:
        _logger.warning("The prior could not be refitted: %s %s", error.message, error.remedy)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
