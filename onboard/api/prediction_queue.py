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
from onboard.errors import InputError
from onboard.versions.describe import resolve

if TYPE_CHECKING:
    from onboard.domain.prediction import Prediction
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

    def predict(self, inputs: Sequence[dict[str, Any]], left: Callable[[], bool] = lambda: False) -> list[Prediction]:
        """Answers in input order.

        Args:
            left: whether the client has gone; asked before every batch.

        Raises:
            UnavailableError: too many wait already.
            InputError: the client has gone.
            InputError, NotFoundError, PinMismatchError: as `onboard.serving.Predictor.predict`.
        """
        from onboard.serving.requests import parse_requests

        def before_batch() -> None:
            self._turns.give_way()
            if left():
                raise InputError("The client went away before it was answered.", "Ask again.")

        requests = parse_requests(inputs)
        with self._places.place(), self._turns.taken():
            if self._predictor is None:
                self._require(requests)
            return self._loaded().answer(requests, before_batch)

    def _require(self, requests: Sequence[PredictionRequest]) -> None:
        """What is wrong is told before a model is loaded. Raises NotFoundError, InputError."""
        from onboard.bases import find_base
        from onboard.hypernetworks.register import register_base
        from onboard.serving.requests import require_forms

        register_base(self._services, find_base(self._services.settings.base))
        references = sorted({str(request.reference) for request in requests})
        versions = resolve(self._services.database, *references)
        require_forms(requests, {name: version.pairs for name, version in zip(references, versions, strict=True)})

    def _loaded(self) -> Predictor:
        if self._predictor is None:
            from onboard.serving.predictor import Predictor

            self._predictor = Predictor(self._services)
        return self._predictor
