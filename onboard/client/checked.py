"""What the checks of a service say of a dataset, as the client returns it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from onboard.client.learned import kind_of

if TYPE_CHECKING:
    from onboard.client.document import Document
    from onboard.domain.dataset import Kind, Label


@dataclass(frozen=True, slots=True)
class CheckedLabel:
    """A label, the words that it is learned as, and its rows in each split."""

    label: Label
    word: str
    train: int
    validation: int
    test: int

    @classmethod
    def of(cls, document: Document) -> CheckedLabel:
        """Read a label of a check's document. Raises AnswerError."""
        rows = (document.read(split, int) for split in ("train", "validation", "test"))
        return cls(document.label("label"), document.read("word", str), *rows)


@dataclass(frozen=True, slots=True)
class DatasetWarning:
    """What should be known of a dataset that can be used all the same.

    Args:
        code: short stable name, such as `exact_duplicates`.
        count: how many rows or labels it is about.
        remedy: what to do, in the words of the command line; empty where there is nothing to do.
        examples: a few of them.
    """

    code: str
    message: str
    count: int
    remedy: str
    examples: tuple[Mapping[str, Any], ...]

    @classmethod
    def of(cls, document: Document) -> DatasetWarning:
        """Read a warning. Raises AnswerError."""
        return cls(
            document.read("code", str), document.read("message", str), document.read("count", int),
            document.read("remedy", str), document.parts("examples"),
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class CheckedDataset:
    """A dataset that a service would take.

    Args:
        task: what it would be called.
        rows: that are used, by split.
        labels: empty for a regression.
        digest: identity of what would be trained on.
        estimated_seconds: at the pace of the last jobs there, if the hypernetwork is not tuned; None where the service
            does not say it.
        estimated_seconds_tuned: the same, if it is.
        estimated_seconds_first: the same, until a provisional version is published.
        document: everything, as `onboard check --json` prints it.
    """

    task: str
    kind: Kind
    rows: Mapping[str, int]
    labels: tuple[CheckedLabel, ...]
    warnings: tuple[DatasetWarning, ...]
    digest: str
    estimated_seconds: int | None
    estimated_seconds_tuned: int | None
    estimated_seconds_first: int | None
    document: Mapping[str, Any] = field(repr=False)

    @classmethod
    def of(cls, document: Document) -> CheckedDataset:
        """Read a check's document. Raises AnswerError."""
        return cls(
            task=document.read("task", str),
            kind=kind_of(document),
            rows=document.mapped("rows", int),
            labels=tuple(map(CheckedLabel.of, document.parts("labels"))),
            warnings=tuple(map(DatasetWarning.of, document.parts("warnings"))),
            digest=document.read("digest", str),
            estimated_seconds=document.given("estimated_seconds", int),
            estimated_seconds_tuned=document.given("estimated_seconds_tuned", int),
            estimated_seconds_first=document.given("estimated_seconds_first", int),
            document=document,
        )
