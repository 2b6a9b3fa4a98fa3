"""Report the progress of a stage to the job's log, with the time left."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final

from onboard.domain.job import STEPS_BETWEEN
from onboard.domain.moment import seconds_text

_EVERY_SECONDS: Final = 5.0  # minimum interval between progress lines of work that is not counted in steps


class Course:
    """Progress of one stage.

    Args:
        note: writes a line of progress, with numbers.
        checkpoint: raises if the stage has to stop.
        total: number of units in all parts of the stage.
    """

    def __init__(self, note: Callable[..., Any], checkpoint: Callable[[], None], total: float) -> None:
        self._note, self._checkpoint, self._total = note, checkpoint, total
        self._began = self._said = time.monotonic()
        self._steps = 0

    def part(self, what: str, steps: int) -> Callable[[int, float], None]:
        """Return a callback for a training of `steps` steps; it logs some of them as steps of `what`."""

        def on_step(step: int, loss: float) -> None:
            self._checkpoint()
            self._steps += 1
            if step % STEPS_BETWEEN == 0:
                self._note(f"{what} step {step}/{steps}{self._left(self._steps)}", loss=round(loss, 4))

        return on_step

    def reached(self, done: float, what: str) -> None:
        """Log now and then that `done` of the total is finished, as `what`."""
        self._checkpoint()
        if time.monotonic() - self._said >= _EVERY_SECONDS:
            self._said = time.monotonic()
            self._note(f"{what}{self._left(done)}")

    def _left(self, done: float) -> str:
        """Estimate the remaining time from the speed so far."""
        if not 0 < done < self._total:
            return ""
        left = (time.monotonic() - self._began) * (self._total - done) / done
        return f", about {seconds_text(left)} left in this stage"
