"""How far a stage is, told in the job's log: of steps or rows that were counted beforehand, with the time left."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final

from onboard.domain.job import STEPS_BETWEEN
from onboard.domain.moment import seconds_text

_EVERY_SECONDS: Final = 5.0  # between two lines of what is not counted in steps


class Course:
    """The way through one stage.

    Args:
        note: writes a line of progress, with numbers.
        checkpoint: raises where the stage is to stop.
        total: of whatever is counted, in all parts of the stage.
    """

    def __init__(self, note: Callable[..., Any], checkpoint: Callable[[], None], total: float) -> None:
        self._note, self._checkpoint, self._total = note, checkpoint, total
        self._began = self._said = time.monotonic()
        self._steps = 0

    def part(self, what: str, steps: int) -> Callable[[int, float], None]:
        """What a training of so many steps calls at each of them; some are told, as steps of `what`."""

        def on_step(step: int, loss: float) -> None:
            self._checkpoint()
            self._steps += 1
            if step % STEPS_BETWEEN == 0:
                self._note(f"{what} step {step}/{steps}{self._left(self._steps)}", loss=round(loss, 4))

        return on_step

    def reached(self, done: float, what: str) -> None:
        """So much of the total is done; told as `what` once in a while."""
        self._checkpoint()
        if time.monotonic() - self._said >= _EVERY_SECONDS:
            self._said = time.monotonic()
            self._note(f"{what}{self._left(done)}")

    def _left(self, done: float) -> str:
        """As long as it took so far, for what is left of the total."""
        if not 0 < done < self._total:
            return ""
        left = (time.monotonic() - self._began) * (self._total - done) / done
        return f", about {seconds_text(left)} left in this stage"
