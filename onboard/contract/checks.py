"""The result of checking a dataset."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import ConfigDict, Field
from pydantic.json_schema import SkipJsonSchema

from onboard.contract.document import Document, Label, Partial, later
from onboard.domain.dataset import Kind


class CheckedLabel(Document):
    """A label, its label words, and its rows per split."""

    label: Label
    word: str
    train: int
    validation: int
    test: int


class DatasetWarning(Partial):
    """A warning about a dataset.

    code: short stable name, such as `exact_duplicates`. type: the same as the type of an error, `exact-duplicates`.
    count: how many rows or labels it is about.
    remedy: what to do, in the words of the command line; empty where there is nothing to do.
    examples: a few of them.
    """

    code: str
    type: str = later("")
    message: str
    count: int
    remedy: str
    examples: tuple[dict[str, Any], ...]


class DatasetFields(Document):
    """The columns of the texts and of the label."""

    text: tuple[str, ...]
    label: str


class TextLengths(Document):
    """The lengths of the texts of all splits, in characters."""

    mean: float
    longest: int


class ValidationRows(Document):
    """How the version will be validated, and the number of training rows that are held out for it."""

    method: Literal["submitted", "held_out", "cross_validated", "none"]
    held_out: int


class DatasetReport(Document):
    """The report on a dataset that passed the checks."""

    model_config = ConfigDict(json_schema_serialization_defaults_required=True)

    source: str = later("", "The file or the name on the hub, as given.")
    revision: str | None = later(description="Commit of a dataset of the hub; null for others.")
    kind: Kind
    kind_reason: str = later("")
    fields: DatasetFields | None = later()
    rows_read: dict[str, int] = later(
        {}, "Number of usable rows, by split, before duplicates, conflicts and shared rows were dropped."
    )
    rows: dict[str, int] = Field(description="Number of used rows, by split.")
    labels: tuple[CheckedLabel, ...] = Field(description="Empty for a regression.")
    low: float | None = later(description="Smallest training value of a regression; null for others.")
    high: float | None = later(description="Largest training value of a regression; null for others.")
    characters: TextLengths | None = later()
    validation: ValidationRows | None = later()
    warnings: tuple[DatasetWarning, ...]
    digest: str = Field(description="Digest of the rows that would be trained on.")


class CheckDocument(DatasetReport):
    """The output of `onboard check --json`."""

    model_config = ConfigDict(extra="allow")

    task: str
    estimated_seconds: int | SkipJsonSchema[None] = later(
        description="Estimated duration if the hypernetwork is not tuned."
    )
    estimated_seconds_tuned: int | SkipJsonSchema[None] = later(description="Estimated duration if it is tuned.")
    estimated_seconds_first: int | SkipJsonSchema[None] = later(
        description="Estimated time until the provisional version is published."
    )
    estimate_basis: str | SkipJsonSchema[None] = later(
        description="The basis of the estimates: recent jobs of this service, or a laptop."
    )
