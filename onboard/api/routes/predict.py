"""Predictions for any mix of tasks."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Depends, Request

from onboard.api.access import requires
from onboard.api.deps import ClientLeft
from onboard.api.schemas.predictions import PredictionInputs, Predictions
from onboard.domain.access import Scope

router = APIRouter(prefix="/v1/predict", tags=["predictions"], dependencies=[Depends(requires(Scope.READ))])


@router.post("", response_model=Predictions, response_model_exclude_none=True)
def predict(body: PredictionInputs, request: Request, left: ClientLeft) -> dict[str, Any]:
    """Answers in the order of the inputs; none when one of them is wrong."""
    inputs = [asked.model_dump(exclude_none=True) for asked in body.inputs]
    answers = request.app.state.predictions.predict(inputs, left)
    return {
        "predictions": [{**answer.to_json(probabilities=body.probabilities), "weak": answer.weak} for answer in answers]
    }
