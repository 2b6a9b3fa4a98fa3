"""Predictions, as requests and as answers."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, Field

from onboard.domain.limits import MAX_INPUTS, MAX_TEXT_CHARACTERS

Text = Annotated[str, Field(min_length=1, max_length=MAX_TEXT_CHARACTERS)]


class PredictionInput(BaseModel, extra="forbid"):
    """One text, or a pair, for one task."""

    task: Annotated[str, Field(max_length=64, description="Name of a task.")]
    ref: Annotated[str | None, Field(max_length=64, description="latest, vN or an alias.")] = None
    text: Text | None = None
    text_a: Text | None = None
    text_b: Text | None = None


class PredictionInputs(BaseModel, extra="forbid"):
    """Texts for any mix of tasks."""

    inputs: Annotated[list[PredictionInput], Field(min_length=1, max_length=MAX_INPUTS)]


class PredictionDocument(BaseModel):
    """An answer: the label as it was submitted, a number for a regression."""

    label: str | bool | int | float
    probability: float
    task: str
    version: int


class Predictions(BaseModel):
    """Answers in the order of the inputs."""

    predictions: list[PredictionDocument]
