"""What a program asks to be answered, in as many requests as the service takes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeVar

from onboard.client.answers import outcome_of
from onboard.client.asking import Asking, send
from onboard.client.connection import PATIENCE_SECONDS
from onboard.client.steps import Steps, operation
from onboard.contract.requests import parse_requests
from onboard.domain.limits import MAX_INPUTS
from onboard.domain.names import LATEST
from onboard.domain.prediction import Outcome, Prediction, Unanswered, all_answered
from onboard.errors import AnswerError, DamagedError, NotFoundError, PinMismatchError

Answered = TypeVar("Answered", Prediction, Outcome)
_PART_BYTES: Final = 6 << 20  # of a request; the service takes 8 MiB


class Predictions(Asking):
    """Answers for any mix of tasks."""

    @operation
    def predict(self, inputs: Sequence[Mapping[str, Any]], *, probabilities: bool = False) -> Steps[list[Prediction]]:
        """Predictions in the order of the inputs. Tasks may be mixed.

        One version answers all inputs of a task and reference, though they go in several requests.

        Args:
            inputs: `{"task", "ref"?, "labels"?, "unknown"?, "text" | "text_a", "text_b"}` each; with `labels` the
                answer is one of these, with `unknown` it says whether the text is unlike the task's data.
            probabilities: answer with every label's probability too.

        Raises:
            InputError: an input is wrong, has one text where its task takes two (or the reverse), or labels that its
                task has not.
            NotFoundError: no such task or version; `outcomes` answers the other inputs.
        """
        return _outcomes(inputs, probabilities, all_answered)

    @operation
    def outcomes(self, inputs: Sequence[Mapping[str, Any]], *, probabilities: bool = False) -> Steps[list[Outcome]]:
        """Like `predict`, but an input whose version cannot answer becomes `Unanswered` with its error.

        Raises:
            InputError: as of `predict`.
        """
        return _outcomes(inputs, probabilities, list)


def _outcomes(
    inputs: Sequence[Mapping[str, Any]], probabilities: bool, taken: Callable[[list[Outcome]], list[Answered]]
) -> Steps[list[Answered]]:
    """Outcomes of all inputs; `taken` sees those of each request before the next one is sent."""
    parse_requests(inputs)  # all of them, before the first part is answered
    answering: dict[tuple[Any, Any], str] = {}  # the version that answered first: an alias may move meanwhile
    answered: list[Answered] = []
    for part in _parts(inputs):
        pinned = [{**row, "ref": answering[name]} if (name := _named(row)) in answering else row for row in part]
        outcomes = yield from _predicted(pinned, probabilities)
        for row, outcome in zip(part, outcomes, strict=True):
            if isinstance(outcome, Prediction):
                answering.setdefault(_named(row), f"v{outcome.version}")
        answered += taken(outcomes)
    return answered


def _predicted(inputs: Sequence[Mapping[str, Any]], probabilities: bool) -> Steps[list[Outcome]]:
    body: dict[str, Any] = {"inputs": [dict(asked) for asked in inputs]}
    if probabilities:  # a service of an earlier version does not know it
        body["probabilities"] = True
    try:
        answer = yield from send("POST", "/v1/predict", body, repeatable=True, timeout_seconds=PATIENCE_SECONDS)
    except (NotFoundError, PinMismatchError, DamagedError) as error:
        if len(inputs) > 1:
            raise
        task, ref = _named(inputs[0])
        return [Unanswered(task, ref or LATEST, error)]
    outcomes = [outcome_of(document) for document in answer.parts("predictions")]
    if len(outcomes) != len(inputs):
        raise AnswerError(
            "answer-count-differs", wrong="predictions", place=answer.place, answered=len(outcomes), asked=len(inputs)
        )
    return outcomes


def _parts(inputs: Sequence[Mapping[str, Any]]) -> Iterator[list[Mapping[str, Any]]]:
    """The inputs as many at a time as one request may have."""
    part: list[Mapping[str, Any]] = []
    size = 0
    for asked in inputs:
        own = len(json.dumps(dict(asked)))
        if part and (len(part) == MAX_INPUTS or size + own > _PART_BYTES):
            yield part
            part, size = [], 0
        part.append(asked)
        size += own
    if part:
        yield part


def _named(request: Mapping[str, Any]) -> tuple[Any, Any]:
    return request["task"], request.get("ref")
