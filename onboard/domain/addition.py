"""New rows for an existing task, declared once for the command line, HTTP, the pages and the client."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Annotated, Literal

from onboard.domain.submission import Key, LabelField, Option, Priority, QueueName, TextField, TimeLimit, settle_fields
from onboard.errors import InputError

AddedHow = Literal["add", "replace", "remove"]


@dataclass(frozen=True, slots=True)
class Addition:
    """A file of rows, and how to combine them with the task's dataset.

    Raises:
        InputError: options exclude each other.
    """

    dataset: Annotated[
        str | Path,
        Option(
            "File of labeled rows; with --remove the labels may be missing.",
            form="File of labeled rows; with remove the labels may be missing.",
        ),
    ]
    _: KW_ONLY
    replace: Annotated[bool, Option("Correct the labels of existing rows; new texts are added too.")] = False
    remove: Annotated[bool, Option("Remove the rows with these texts.")] = False
    new_labels: Annotated[bool, Option("Allow rows with labels that the task does not have.")] = False
    text_field: TextField = ()
    label_field: LabelField = None
    fast: Annotated[bool, Option("Stop after the readout, which takes seconds, without an embedding.")] = False
    queue: QueueName = "default"
    priority: Priority = 0
    time_limit: TimeLimit = None
    key: Key = None

    def __post_init__(self) -> None:
        settle_fields(self)
        if self.remove and (self.replace or self.new_labels):
            other = "--replace" if self.replace else "--new-labels"
            raise InputError("remove-with-others", field="remove", other=other)

    @property
    def how(self) -> AddedHow:
        """How to combine the rows with the dataset."""
        return "remove" if self.remove else "replace" if self.replace else "add"
