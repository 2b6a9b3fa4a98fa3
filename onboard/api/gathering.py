"""Micro-batching: answer small simultaneous requests together, in one pass of the model.

The first request leads: it waits a moment, then for the model, and takes all requests that have arrived by then. Later
ones wait for the next leader, which waits for the model meanwhile. So an idle service answers at once, and a busy one
in batches.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NoReturn

from onboard.api.turns import Turns
from onboard.errors import DeadlineError, OnboardError

if TYPE_CHECKING:
    from onboard.contract.requests import PredictionRequest
    from onboard.domain.prediction import Outcome

WAIT_SECONDS: Final = 0.002  # time that a leader waits for simultaneous requests

AnswerBatch = Callable[[Sequence["PredictionRequest"], Callable[[], None]], Sequence["Outcome"]]


class Deadline:
    """The deadline of a request.

    Args:
        seconds: from now.
        clock: a monotonic clock.
    """

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds, self._clock, self._end = seconds, clock, clock() + seconds

    @property
    def left(self) -> float:
        """Remaining seconds; 0 after the deadline."""
        return max(0.0, self._end - self._clock())

    def require(self) -> None:
        """Raise DeadlineError after the deadline."""
        if not self.left:
            raise self.over

    @property
    def over(self) -> DeadlineError:
        """Return the error for the deadline."""
        return DeadlineError("prediction-too-late", seconds=self._seconds)


@dataclass(eq=False)
class _WaitingInputs:
    """A waiting request; woken when it is answered, or when it has to lead."""

    requests: Sequence[PredictionRequest]
    deadline: Deadline
    woken: threading.Event = field(default_factory=threading.Event)
    leads: bool = False
    outcomes: Sequence[Outcome] | None = None
    error: BaseException | None = None


class Gathering:
    """Answers small requests together.

    Args:
        turns: lock of everything that uses the model.
        answer: returns the outcomes of requests in order; its second argument is called before every batch.
        most_rows: maximum rows of requests that are answered together.
    """

    def __init__(self, turns: Turns, answer: AnswerBatch, most_rows: int) -> None:
        self._turns, self._answer, self._most_rows = turns, answer, most_rows
        self._guard = threading.Lock()
        self._waiting: deque[_WaitingInputs] = deque()
        self._led = False

    def outcomes(
        self, requests: Sequence[PredictionRequest], deadline: Deadline, before_batch: Callable[[], None]
    ) -> Sequence[Outcome]:
        """Return answers in the order of the requests.

        Args:
            before_batch: called before every batch of this caller alone; may raise to stop.

        Raises:
            DeadlineError: the deadline passed first.
            OnboardError: see `answer`, for these requests alone.
        """
        mine = _WaitingInputs(requests, deadline)
        with self._guard:
            self._waiting.append(mine)
            mine.leads, self._led = not self._led, True
        if not mine.leads:
            mine.woken.wait(deadline.left)
            self._leave_when_over(mine)
        if mine.leads:
            self._lead(mine, before_batch)
        if mine.error is not None:
            raise mine.error
        assert mine.outcomes is not None
        return mine.outcomes

    def _leave_when_over(self, mine: _WaitingInputs) -> None:
        """Raise DeadlineError if the request was neither answered nor made leader in time."""
        with self._guard:
            if mine.woken.is_set():
                return
            if mine in self._waiting:
                self._waiting.remove(mine)
        raise mine.deadline.over

    def _lead(self, mine: _WaitingInputs, before_batch: Callable[[], None]) -> None:
        time.sleep(WAIT_SECONDS)
        with self._turns.taken(mine.deadline.left) as held:
            if not held:
                self._give_up(mine)
            batch = self._taken()
            try:
                self._answer_all(batch, before_batch)
            except BaseException as error:
                for asked in batch:
                    if asked.outcomes is None:
                        asked.error = asked.error or error
                if mine.outcomes is None:
                    raise
            finally:
                for asked in batch:
                    asked.woken.set()

    def _give_up(self, mine: _WaitingInputs) -> NoReturn:
        """Give up a request that was not answered in time; another one leads."""
        with self._guard:
            self._waiting.remove(mine)
            self._pass_on()
        raise mine.deadline.over

    def _pass_on(self) -> None:
        """Let the longest-waiting request lead; the caller holds the guard."""
        self._led = bool(self._waiting)
        if self._waiting:
            self._waiting[0].leads = True
            self._waiting[0].woken.set()

    def _taken(self) -> list[_WaitingInputs]:
        """Return the requests to answer now, in order of arrival; the next one leads."""
        batch: list[_WaitingInputs] = []
        rows = 0
        with self._guard:
            while self._waiting and (not batch or rows + len(self._waiting[0].requests) <= self._most_rows):
                asked = self._waiting.popleft()
                batch.append(asked)
                rows += len(asked.requests)
            self._pass_on()
        return batch

    def _answer_all(self, batch: Sequence[_WaitingInputs], before_batch: Callable[[], None]) -> None:
        for asked in batch:
            try:
                asked.deadline.require()
            except DeadlineError as error:
                asked.error = error
        in_time = [asked for asked in batch if asked.error is None]
        if len(in_time) > 1:
            try:
                self._answer_together(in_time)
            except OnboardError:  # concerns one of them, which must get it alone
                in_time = [asked for asked in in_time if asked.outcomes is None]
            else:
                return
        for asked in in_time:
            try:
                asked.outcomes = self._answer(asked.requests, before_batch if len(batch) == 1 else self._turns.give_way)
            except OnboardError as error:
                asked.error = error

    def _answer_together(self, in_time: Sequence[_WaitingInputs]) -> None:
        every = [request for asked in in_time for request in asked.requests]
        outcomes, start = self._answer(every, self._turns.give_way), 0
        for asked in in_time:
            asked.outcomes = outcomes[start : start + len(asked.requests)]
            start += len(asked.requests)
