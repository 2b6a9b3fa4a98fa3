"""New rows for an existing task, declared once for the command line, HTTP, the pages and the client."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Annotated, Literal

from onboard.domain.names import NAME_PATTERN
from onboard.domain.submission import Option, settle_fields
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
    text_field: Annotated[Sequence[str], Option("Field of the text; twice for pairs.", limits={"max_length": 2})] = ()
    label_field: Annotated[str | None, Option("Field of the label.", limits={"max_length": 200})] = None
    fast: Annotated[bool, Option("Stop after the readout, which takes seconds, without an embedding.")] = False
    queue: Annotated[str, Option("Queue of the job.", limits={"pattern": NAME_PATTERN})] = "default"
    priority: Annotated[int, Option("Priority; higher is more urgent.", limits={"ge": -(2**31), "lt": 2**31})] = 0
    time_limit: Annotated[
        float | None, Option("Seconds after which an attempt fails.", limits={"gt": 0, "allow_inf_nan": False})
    ] = None
    key: Annotated[
        str | None, Option("Idempotency key: a request with the same key returns the first job.", form=None)
    ] = None

    def __post_init__(self) -> None:
        settle_fields(self)
        if self.remove and (self.replace or self.new_labels):
            other = "--replace" if self.replace else "--new-labels"
            raise InputError("remove-with-others", field="remove", other=other)

    @property
    def how(self) -> AddedHow:
        """How to combine the rows with the dataset."""
        return "remove" if self.remove else "replace" if self.replace else "add"
