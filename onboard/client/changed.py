"""A task's labels and what became of a change of them, as typed objects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from onboard.client.document import Document
from onboard.domain.dataset import Label


@dataclass(frozen=True, slots=True)
class TaskLabel:
    """A label of a task.

    Args:
        word: that stands for it in the model; None before the first version.
        rows: of training.
        description: what it means; None where nobody said.
    """

    label: Label
    word: str | None
    rows: int
    description: str | None

    @classmethod
    def of(cls, document: Document) -> TaskLabel:
        """Read a label. Raises AnswerError."""
        return cls(
            document["label"], document.given("word", str), document.read("rows", int),
            document.given("description", str),
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class ChangedLabels:
    """What a change of labels came to: a version that is there, or a job that makes one.

    Args:
        version: of a renaming.
        job: of any other change.
        document: everything, as `onboard labels TASK rename A B --json` prints it.
    """

    task: str
    version: int | None
    job: str | None
    document: Mapping[str, Any] = field(repr=False)

    @classmethod
    def of(cls, document: Document) -> ChangedLabels:
        """Read the answer to a change. Raises AnswerError."""
        return cls(document.read("task", str), document.given("version", int), document.given("job", str), document)
