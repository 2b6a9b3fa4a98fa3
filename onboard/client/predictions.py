"""Predictions, split into requests of the size that the service accepts."""

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
_PART_BYTES: Final = 6 << 20  # per request; the service accepts 8 MiB


class PredictionOperations(Asking):
    """Predictions for any mix of tasks."""

    @operation
    def predict(self, inputs: Sequence[Mapping[str, Any]], *, probabilities: bool = False) -> Steps[list[Prediction]]:
        """Return predictions in the order of the inputs. Tasks may be mixed.

        One version answers all inputs of a task and reference, even across several requests.

        Args:
            inputs: `{"task", "ref"?, "labels"?, "unknown"?, "text" | "text_a", "text_b"}` each. With `labels`, the
                answer is one of these; with `unknown`, it shows whether the text is unlike the task's data.
            probabilities: include the probability of every label.

        Raises:
            InputError: an input is invalid, has one text for a task with two (or the reverse), or unknown labels.
            NotFoundError: the task or version does not exist; `outcomes` answers the other inputs.
        """
        return _outcomes(inputs, probabilities, all_answered)

    @operation
    def outcomes(self, inputs: Sequence[Mapping[str, Any]], *, probabilities: bool = False) -> Steps[list[Outcome]]:
        """Like `predict`, but an input that its version cannot answer becomes `Unanswered` with the error.

        Raises:
            InputError: as in `predict`.
        """
        return _outcomes(inputs, probabilities, list)


def _outcomes(
    inputs: Sequence[Mapping[str, Any]], probabilities: bool, taken: Callable[[list[Outcome]], list[Answered]]
) -> Steps[list[Answered]]:
    """Return outcomes of all inputs. `taken` receives those of each request before the next one is sent."""
    parse_requests(inputs)  # validates all inputs before the first request
    answering: dict[tuple[Any, Any], str] = {}  # the version that answered first, because an alias may move meanwhile
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
    body: dict[str, Any] = {"inputs": [dict(single_input) for single_input in inputs]}
    if probabilities:  # services of earlier releases do not support it
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
    """Yield the inputs in parts that fit into one request."""
    part: list[Mapping[str, Any]] = []
    size = 0
    for single_input in inputs:
        input_size = len(json.dumps(dict(single_input)))
        if part and (len(part) == MAX_INPUTS or size + input_size > _PART_BYTES):
            yield part
            part, size = [], 0
        part.append(single_input)
        size += input_size
    if part:
        yield part


def _named(request: Mapping[str, Any]) -> tuple[Any, Any]:
    return request["task"], request.get("ref")
