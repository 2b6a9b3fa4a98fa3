"""Predictions: one copy of the model, one batch at a time, and a short queue before it.

Small requests that come together are answered together; larger ones take turns with them batch by batch, so that a
text alone does not wait for the hundreds of another request.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from onboard.api.gathering import Deadline, Gathering
from onboard.api.places import Places, caller, share_of
from onboard.api.turns import Turns
from onboard.domain.prediction import all_answered
from onboard.errors import InputError, RateLimitError

if TYPE_CHECKING:
    import numpy as np

    from onboard.contract.requests import PredictionRequest
    from onboard.domain.prediction import Outcome
    from onboard.registry.services import Services
    from onboard.serving.predictor import Predictor

MOST_WAITING: Final = 32  # requests that are answered or wait for it
MOST_WAITING_CHARACTERS: Final = 16 << 20  # of all their texts
MOST_TOGETHER: Final = 64  # texts of small requests that are answered together; a larger request goes alone
DEADLINE_SECONDS: Final = 300.0  # of a request that names none
_FULL: Final = "Too many predictions wait."
_REMEDY: Final = "Try again in a second."


class PredictionQueue:
    """Answers predictions. The model is loaded by the first one, and once."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._turns = Turns()
        self._places = Places(MOST_WAITING, _FULL, _REMEDY, retry_seconds=1, error=RateLimitError)
        self._guard, self._characters = threading.Lock(), Counter[str]()
        self._gathering = Gathering(self._turns, self._answered, MOST_TOGETHER)
        self._predictor: Predictor | None = None

    def load(self) -> None:
        """Load the model before anybody asks, and let it answer a text of its own.

        Raises:
            DamagedError: the files of the base are broken.
            OutOfMemoryError: the GPU has no room for it.
        """
        with self._turns.taken():
            self._loaded().warm_up()

    def predict(
        self,
        inputs: Sequence[dict[str, Any]],
        left: Callable[[], bool] = lambda: False,
        seconds: float = DEADLINE_SECONDS,
    ) -> Sequence[Outcome]:
        """Answers in input order. Of several inputs those that cannot be answered are `Unanswered`.

        Args:
            left: whether the client has gone; asked before every batch that is this request's alone.
            seconds: after which nobody waits for the answer any more.

        Raises:
            RateLimitError: too many wait already.
            DeadlineError: the time is over.
            InputError: the client has gone, or an input is wrong.
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
        """What a readout sees of texts, batch by batch in turn with predictions; as of `Predictor.features`."""
        with self._turns.taken():
            return self._loaded().features(texts, known, self._turns.give_way)

    @contextmanager
    def _room(self, requests: Sequence[PredictionRequest]) -> Iterator[None]:
        """Room for their texts until the block ends; one token gets half of it, unless it asks for nothing else.

        Raises:
            RateLimitError: there is none.
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

    def _answered(self, requests: Sequence[PredictionRequest], before_batch: Callable[[], None]) -> Sequence[Outcome]:
        """By whoever has its turn."""
        outcomes: Sequence[Outcome] = [] if self._predictor else self._unknown(requests)
        return outcomes or self._loaded().answer_others(requests, before_batch)

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
