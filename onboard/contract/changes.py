"""Changes of a task's rows and labels."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from onboard.contract.document import Document, Label
from onboard.contract.jobs import Accepted
from onboard.domain.job import JobState
from onboard.domain.label_change import MOST_LETTERS, LabelAction

Change = Annotated[
    dict[str, Any], Field(description="The change: `action`, its origin, `counts` of rows, or `labels`.")
]
_Text = Annotated[str, Field(min_length=1, max_length=MOST_LETTERS)]
_Label = _Text | bool | int | Annotated[float, Field(allow_inf_nan=False)]


class AcceptedRows(Accepted):
    """A queued job that learns the changed rows of a task."""

    change: Change


class TaskLabel(Document):
    """A label with its label word, training rows and description."""

    label: Label
    word: str | None
    rows: Annotated[
        int | None, Field(description="Number of training rows; null if the task's rows are not stored here.")
    ]
    description: str | None


class LabelList(Document):
    """The labels of a task's newest rows."""

    task: str
    version: int | None
    job: Annotated[str | None, Field(description="A job that is learning these rows; null if there is none.")]
    labels: tuple[TaskLabel, ...]


class LabelsWanted(BaseModel):
    """A change of labels."""

    model_config = ConfigDict(extra="forbid")

    action: LabelAction
    labels: Annotated[list[_Label], Field(min_length=1, max_length=1000, description="Labels to change.")]
    to: Annotated[_Label | None, Field(description="The new name, with rename and merge.")] = None
    description: Annotated[
        str | None, Field(max_length=1_300, description="The description of the label, with describe.")
    ] = None
    fast: Annotated[bool, Field(description="Stop after the readout; learn no embedding.")] = False


class ChangedLabels(Document):
    """The new version (rename), or the job that creates it."""

    task: str
    version: int | None
    job: str | None
    state: JobState
    change: Change
    warning: str | None = None
