"""Predictions for any mix of tasks."""

from __future__ import annotations

from typing import Any, Final

from fastapi import APIRouter, Depends, Request

from onboard.api.access import requires
from onboard.api.deps import ClientLeft
from onboard.api.prediction_queue import DEADLINE_SECONDS
from onboard.api.problems import document_of, log
from onboard.api.schemas.predictions import PredictionInputs, Predictions
from onboard.domain.access import Scope
from onboard.domain.prediction import Outcome, Prediction
from onboard.errors import InputError

DEADLINE: Final = "Onboard-Deadline-Seconds"  # a header
MOST_SECONDS: Final = 600.0

router = APIRouter(prefix="/v1/predict", tags=["predictions"], dependencies=[Depends(requires(Scope.READ))])


@router.post("", response_model=Predictions, response_model_exclude_none=True)
def predict(body: PredictionInputs, request: Request, left: ClientLeft) -> dict[str, Any]:
    """Answers in the order of the inputs. Of several, those that cannot be answered have an `error` instead."""
    inputs = [asked.model_dump(exclude_none=True) for asked in body.inputs]
    if body.unknown:
        inputs = [{**asked, "unknown": True} for asked in inputs]
    outcomes = request.app.state.predictions.predict(inputs, left, _seconds(request))
    return {"predictions": [_document(outcome, request, body.probabilities) for outcome in outcomes]}


def _seconds(request: Request) -> float:
    """How long the client waits for the answer. Raises InputError: its header names no such time."""
    named = request.headers.get(DEADLINE)
    if named is None:
        return DEADLINE_SECONDS
    try:
        seconds = float(named)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= MOST_SECONDS:
        raise InputError(
            f"{DEADLINE} names no time.", f"Give seconds above 0, {MOST_SECONDS:g} at most, or leave it out.",
            field=DEADLINE,
        )  # fmt: skip
    return seconds


def _document(outcome: Outcome, request: Request, probabilities: bool) -> dict[str, Any]:
    if isinstance(outcome, Prediction):
        return {**outcome.to_json(probabilities=probabilities), "weak": outcome.weak}
    log(request.method, request.url.path, outcome.error)
    return {"task": outcome.task, "ref": outcome.ref, "error": document_of(outcome.error)}
