"""Changes of a task's rows and labels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field

from onboard.contract.document import Document, Label, Partial
from onboard.contract.jobs import Accepted
from onboard.domain.change import OF_LABELS, ChangeAction
from onboard.domain.counting import counted
from onboard.domain.dataset import label_text
from onboard.domain.job import JobState
from onboard.domain.label_change import MOST_LETTERS, LabelAction

_OF_ROWS: Final = {
    "added": "{} added", "replaced": "{} with a corrected label", "removed": "{} removed",
    "repeated": "{} that the task already had", "contradicted": "{} that contradict a stored label, skipped",
    "missing": "{} that the task does not have",
}  # fmt: skip
_Text = Annotated[str, Field(min_length=1, max_length=MOST_LETTERS)]
_Label = _Text | bool | int | Annotated[float, Field(allow_inf_nan=False)]


class TaskChange(Partial):
    """A change of a task, in a job's `spec.options.change` and in a version's `change`.

    `job`, `version` and `dataset` describe the task before the change; `rows` is the digest of the submitted rows,
    `file` their file. `counts` are numbers of rows by what happened to them. `labels` are the changed labels, `to`
    their new names, `description` the meaning of a label, `by` who changed them.
    """

    action: ChangeAction
    job: str | None
    version: int | None
    dataset: str
    rows: str | None = None
    file: str | None = None
    counts: dict[str, int] | None = None
    labels: tuple[Label, ...] | None = None
    to: Label | None = None
    description: str | None = None
    by: str | None = None

    @property
    def sentence(self) -> str:
        """The change in one sentence."""
        before = f"v{self.version}" if self.version else f"job {self.job}"
        if self.action in OF_LABELS:
            return f"Made of {before}: {self._of_labels()}."
        counts = self.counts or {}
        done = [text.format(counted(counts[name], "row")) for name, text in _OF_ROWS.items() if counts.get(name)]
        return f"Made from the rows of {before}: {', '.join(done) or 'no row changed'}."

    def _of_labels(self) -> str:
        named = " and ".join(repr(label_text(label)) for label in self.labels or ())
        if self.action == "delete":
            return f"without the label {named} and its rows"
        if self.action == "describe" or self.to is None:
            return f"the label {named} is described"
        to = repr(label_text(self.to))
        return f"the label {named} is called {to}" if self.action == "rename" else f"the labels {named} are one, {to}"


def change_sentence(stored: Mapping[str, Any]) -> str:
    """Describe a stored change in one sentence."""
    return TaskChange.model_validate(stored).sentence


class AcceptedRows(Accepted):
    """A queued job that learns the changed rows of a task."""

    change: TaskChange


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
    change: TaskChange
    warning: str | None = None
