"""Predictions for any mix of tasks."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header, Request

from onboard.api.access import requires
from onboard.api.deps import ClientLeft
from onboard.api.prediction_queue import DEADLINE_SECONDS
from onboard.api.problems import document_of, log
from onboard.contract.predictions import PredictionInputs, Predictions
from onboard.domain.access import Scope
from onboard.domain.prediction import Outcome, Prediction

Deadline = Annotated[
    float,
    Header(
        alias="Onboard-Deadline-Seconds", gt=0, le=600, description="Seconds that the client waits for the response."
    ),
]

router = APIRouter(prefix="/v1/predict", tags=["predictions"], dependencies=[Depends(requires(Scope.READ))])


@router.post("", response_model=Predictions, response_model_exclude_none=True)
def predict(
    body: PredictionInputs, request: Request, left: ClientLeft, deadline: Deadline = DEADLINE_SECONDS
) -> dict[str, Any]:
    """Predict, in the order of the inputs. If there are several, those that cannot be answered have an
    `error` instead.
    """
    inputs = [asked.model_dump(exclude_none=True) for asked in body.inputs]
    if body.unknown:
        inputs = [{**asked, "unknown": True} for asked in inputs]
    outcomes = request.app.state.predictions.predict(inputs, left, deadline)
    return {"predictions": [_document(outcome, request, body.probabilities) for outcome in outcomes]}


def _document(outcome: Outcome, request: Request, probabilities: bool) -> dict[str, Any]:
    if isinstance(outcome, Prediction):
        return outcome.to_json(probabilities=probabilities) | outcome.marks()
    log(request.method, request.url.path, outcome.error)
    return {"task": outcome.task, "ref": outcome.ref, "error": document_of(outcome.error)}
