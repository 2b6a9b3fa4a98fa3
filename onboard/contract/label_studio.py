"""The requests and responses between Label Studio and its machine learning backends, as far as they are supported."""

from __future__ import annotations

from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field

from onboard.contract.document import Document

MOST_TASKS: Final = 10_000  # in one request


class _Sent(BaseModel):
    """A request of Label Studio. Unknown fields are ignored: every release sends more."""

    model_config = ConfigDict(extra="ignore", protected_namespaces=())


class Setup(_Sent):
    """A project to connect."""

    schema_: Annotated[str, Field(alias="schema", description="The project's labeling configuration, XML.")]


class PredictionTasks(_Sent):
    """Tasks for which predictions are requested."""

    tasks: Annotated[list[dict[str, Any]], Field(max_length=MOST_TASKS, description="The tasks, each with its `data`.")]
    label_config: Annotated[str, Field(description="The project's labeling configuration, XML.")]


class Health(Document):
    """The state of the backend."""

    status: str
    model_class: str


class Connected(Document):
    """The backend is ready for the project."""

    model_version: str


class TaskPrediction(Document):
    """The prediction for one task."""

    result: tuple[dict[str, Any], ...]
    score: Annotated[
        float,
        Field(
            description="Margin of the best label over the second. With several labels per text: certainty of the "
            "least certain decision. 1 for a task without text."
        ),
    ]
    model_version: str


class TaskPredictions(Document):
    """Predictions in the order of the tasks."""

    results: tuple[TaskPrediction, ...]
    model_version: str


class LeftOutAnnotation(Document):
    """An annotation that is not a label of a text."""

    number: str
    reason: str


class Received(Document):
    """The result of a webhook."""

    kept: Annotated[int, Field(description="Number of new or changed annotations.")]
    left_out: tuple[LeftOutAnnotation, ...] = ()
    job: Annotated[str | None, Field(description="The job that learns the annotations, after START_TRAINING.")] = None


class LabelingState(Document):
    """The progress of labeling a task."""

    task: str
    annotations: Annotated[int, Field(description="Number of known annotations, including deleted and skipped ones.")]
    texts: Annotated[int, Field(description="Number of texts with a label.")]
    revision: Annotated[int, Field(description="Number of changes of the annotations.")]
    job: Annotated[str | None, Field(description="The job that learns this revision; null if there is none yet.")]
    refit_seconds: Annotated[float | None, Field(description="Duration of the newest refit in this process.")] = None
