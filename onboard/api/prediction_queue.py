"""Predictions: one copy of the model, one batch at a time, and a short queue.

Small simultaneous requests are answered together. Larger ones alternate with them batch by batch, so that a single text
does not wait for the hundreds of another request.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from onboard.api.gathering import Deadline, Gathering
from onboard.api.places import RequestPlaces, caller, share_of
from onboard.api.turns import Turns
from onboard.domain.prediction import all_answered
from onboard.errors import InputError, RateLimitError

if TYPE_CHECKING:
    import numpy as np

    from onboard.contract.requests import PredictionRequest
    from onboard.domain.prediction import Outcome
    from onboard.registry.services import Services
    from onboard.serving.predictor import Predictor

MOST_WAITING: Final = 32  # requests that are answered or wait
MOST_WAITING_CHARACTERS: Final = 16 << 20  # of all their texts
MOST_TOGETHER: Final = 64  # texts of small requests that are answered together; larger requests run alone
DEADLINE_SECONDS: Final = 300.0  # default deadline of a request
_FULL: Final = "Too many predictions wait."
_REMEDY: Final = "Try again in a second."


class PredictionQueue:
    """Answers predictions. The first one loads the model, once."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._turns = Turns()
        self._places = RequestPlaces(MOST_WAITING, _FULL, _REMEDY, retry_seconds=1, error=RateLimitError)
        self._guard, self._characters = threading.Lock(), Counter[str]()
        self._gathering = Gathering(self._turns, self._answered, MOST_TOGETHER)
        self._predictor: Predictor | None = None

    def load(self) -> None:
        """Load the model and answer a test input.

        Raises:
            DamagedError: the files of the base are damaged.
            OutOfMemoryError: the GPU cannot hold it.
        """
        with self._turns.taken():
            self._loaded().warm_up()

    def predict(
        self,
        inputs: Sequence[dict[str, Any]],
        left: Callable[[], bool] = lambda: False,
        seconds: float = DEADLINE_SECONDS,
    ) -> Sequence[Outcome]:
        """Return answers in input order. If there are several inputs, those that cannot be answered are `Unanswered`.

        Args:
            left: whether the client has disconnected; called before every batch of this request alone.

        Raises:
            RateLimitError: too many requests are waiting.
            DeadlineError: the deadline has passed.
            InputError: the client has disconnected, or an input is invalid.
            NotFoundError, PinMismatchError, DamagedError: the only input cannot be answered.
        """
        from onboard.contract.requests import parse_requests

        deadline = Deadline(seconds)

        def before_batch() -> None:
            self._turns.give_way()
            deadline.require()
            if left():
                raise InputError("client-went-away-unanswered")

        requests = parse_requests(inputs)
        with self._places.place(), self._room(requests):
            if len(requests) <= MOST_TOGETHER:
                outcomes = self._gathering.outcomes(requests, deadline, before_batch)
            else:
                with self._turns.taken(deadline.left) as held:
                    if not held:
                        raise deadline.over
                    outcomes = self._answered(requests, before_batch)
        return all_answered(outcomes) if len(outcomes) == 1 else outcomes

    def features(self, texts: Sequence[tuple[str, str | None]], known: Mapping[bytes, np.ndarray]) -> np.ndarray:
        """Return the features of texts, batch by batch in turn with predictions, as `Predictor.features`."""
        with self._turns.taken():
            return self._loaded().features(texts, known, self._turns.give_way)

    @contextmanager
    def _room(self, requests: Sequence[PredictionRequest]) -> Iterator[None]:
        """Reserve memory for their texts until the block ends; one token gets half, unless it is the only one.

        Raises:
            RateLimitError: too many requests are waiting.
        """
        holder, length = caller(), sum(len(request.text_a) + len(request.text_b or "") for request in requests)
        with self._guard:
            total, held = self._characters.total(), self._characters[holder]
            if total and total + length > MOST_WAITING_CHARACTERS:
                raise RateLimitError("too-many-texts-waiting", retry_after_seconds=1)
            if held and held + length > share_of(MOST_WAITING_CHARACTERS):
                raise RateLimitError("too-many-texts-of-token", retry_after_seconds=1)
            self._characters[holder] += length
        try:
            yield
        finally:
            with self._guard:
                self._characters[holder] -= length
                if not self._characters[holder]:
                    del self._characters[holder]

    def close(self) -> None:
        """Write the pending records of answered texts."""
        if self._predictor is not None:
            self._predictor.close()

    def _answered(self, requests: Sequence[PredictionRequest], before_batch: Callable[[], None]) -> Sequence[Outcome]:
        """Answer requests when the model is free."""
        outcomes: Sequence[Outcome] = [] if self._predictor else self._unknown(requests)
        return outcomes or self._loaded().answer_others(requests, before_batch)

    def _unknown(self, requests: Sequence[PredictionRequest]) -> list[Outcome]:
        """Return the requests' errors if none names a version, without loading a model. Raises InputError."""
        from onboard.bases import find_base
        from onboard.hypernetworks.register import register_base
        from onboard.serving.unloaded import look_up, unless_any

        register_base(self._services, find_base(self._services.settings.base))
        return unless_any(requests, look_up(self._services.database, requests))

    def _loaded(self) -> Predictor:
        if self._predictor is None:
            from onboard.serving.predictor import Predictor

            self._predictor = Predictor(self._services, record=True)
        return self._predictor
