"""Predictions: one copy of the model, one batch at a time, and a short queue before it.

Requests take turns batch by batch, so that a text alone does not wait for the hundreds of another request.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from onboard.api.places import Places
from onboard.domain.prediction import all_answered
from onboard.errors import InputError

if TYPE_CHECKING:
    from onboard.domain.prediction import Outcome
    from onboard.services import Services
    from onboard.serving.predictor import Predictor
    from onboard.serving.requests import PredictionRequest

MOST_WAITING: Final = 16  # requests that are answered or wait for it


class Turns:
    """A lock that goes to whoever has waited longest, and that its holder may lend to those who wait."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._taken = False
        self._waiting: deque[threading.Event] = deque()

    @contextmanager
    def taken(self) -> Iterator[None]:
        """Hold it within the block."""
        self._take()
        try:
            yield
        finally:
            self._pass_on()

    def give_way(self) -> None:
        """By its holder: everybody who waits now has a turn first."""
        self._pass_on()
        self._take()

    def _take(self) -> None:
        with self._guard:
            if not self._taken:
                self._taken = True
                return
            mine = threading.Event()
            self._waiting.append(mine)
        mine.wait()

    def _pass_on(self) -> None:
        with self._guard:
            if self._waiting:
                self._waiting.popleft().set()
            else:
                self._taken = False


class PredictionQueue:
    """Answers predictions. The model is loaded by the first one, and once."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._turns = Turns()
        self._places = Places(MOST_WAITING, "Too many predictions wait.", "Try again in a second.", retry_seconds=1)
        self._predictor: Predictor | None = None

    def predict(self, inputs: Sequence[dict[str, Any]], left: Callable[[], bool] = lambda: False) -> Sequence[Outcome]:
        """Answers in input order. Of several inputs those that cannot be answered are `Unanswered`.

        Args:
            left: whether the client has gone; asked before every batch.

        Raises:
            UnavailableError: too many wait already.
            InputError: the client has gone, or an input is wrong.
            NotFoundError, PinMismatchError, DamagedError: the only input cannot be answered.
        """
        from onboard.serving.requests import parse_requests

        def before_batch() -> None:
            self._turns.give_way()
            if left():
                raise InputError("The client went away before it was answered.", "Ask again.")

        requests = parse_requests(inputs)
        with self._places.place(), self._turns.taken():
            outcomes: Sequence[Outcome] = [] if self._predictor else self._unknown(requests)
            outcomes = outcomes or self._loaded().answer_others(requests, before_batch)
        return all_answered(outcomes) if len(outcomes) == 1 else outcomes

    def _unknown(self, requests: Sequence[PredictionRequest]) -> list[Outcome]:
        """The requests' errors where not one names a version: no model is loaded for them. Raises InputError."""
        from onboard.bases import find_base
        from onboard.hypernetworks.register import register_base
        from onboard.serving.unloaded import look_up, unless_any

        register_base(self._services, find_base(self._services.settings.base))
        return unless_any(requests, look_up(self._services.database, requests))

    def _loaded(self) -> Predictor:
        if self._predictor is None:
            from onboard.serving.predictor import Predictor

            self._predictor = Predictor(self._services)
        return self._predictor
