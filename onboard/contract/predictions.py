"""Predictions, as requests and as answers."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, Field

from onboard.contract.document import Document
from onboard.domain.limits import MAX_INPUTS, MAX_LABELS, MAX_TEXT_CHARACTERS

Text = Annotated[str, Field(min_length=1, max_length=MAX_TEXT_CHARACTERS)]


class PredictionInput(BaseModel, extra="forbid"):
    """One text, or a pair, for one task."""

    task: Annotated[str, Field(max_length=64, description="Name of a task.")]
    ref: Annotated[str | None, Field(max_length=64, description="latest, vN or an alias.")] = None
    labels: Annotated[
        tuple[str | bool | int | float, ...] | None,
        Field(max_length=MAX_LABELS, description="Restrict the answer to these labels of the task."),
    ] = None
    unknown: Annotated[bool, Field(description="Report whether the text is unlike the task's data.")] = False
    text: Text | None = None
    text_a: Text | None = None
    text_b: Text | None = None


class PredictionInputs(BaseModel, extra="forbid"):
    """Texts for any mix of tasks."""

    inputs: Annotated[list[PredictionInput], Field(min_length=1, max_length=MAX_INPUTS)]
    probabilities: Annotated[bool, Field(description="Add the probability of every label.")] = False
    unknown: Annotated[bool, Field(description="Report for every text whether it is unlike its task's data.")] = False


class LabelShare(Document):
    """A label, or the value of a regression's bucket, and its probability."""

    label: str | bool | int | float
    probability: float


class PredictionDocument(Document):
    """An answer: the label as it was submitted, a number for a regression, or a set of labels."""

    label: Annotated[str | bool | int | float, Field(description="The label; for several labels, the set as JSON.")]
    labels: Annotated[
        tuple[str | bool | int | float, ...] | None,
        Field(description="The labels of the answer, for tasks with several labels per text; may be empty."),
    ] = None
    probability: Annotated[
        float, Field(description="Probability of the label; for several labels, of the least certain decision.")
    ]
    task: str
    version: int
    weak: Annotated[bool, Field(description="Whether the version is not clearly better than the most frequent label.")]
    unmeasured: Annotated[
        bool | None, Field(description="True if no rows show how good the version is; otherwise omitted.")
    ] = None
    unknown: Annotated[
        bool | None, Field(description="Whether the text is unlike the task's data; only on request.")
    ] = None
    probabilities: Annotated[
        list[LabelShare] | None, Field(description="In the order of the task's labels; only on request.")
    ] = None


class UnansweredDocument(Document):
    """Why a row was not answered, where others were."""

    task: str
    ref: str
    error: Annotated[
        dict[str, Any], Field(description="The problem document that a request with only this input would get.")
    ]


class Predictions(Document):
    """Answers in the order of the inputs."""

    predictions: list[PredictionDocument | UnansweredDocument]


class BulkRun(Document):
    """A run over files. Figures count all of it, also what earlier calls with the same output answered."""

    output: Annotated[str, Field(description="Folder or URL of the answers.")]
    versions: Annotated[list[str], Field(description="The versions that answered, as task@vN.")]
    files: int
    rows: int
    bad_rows: Annotated[int, Field(description="Rows without a valid text: they have an error instead of an answer.")]
    shards: int
    shards_before: Annotated[int, Field(description="Shards that existed when this call began.")]
