"""A labeled dataset: examples, typed labels, splits. Independent of file formats and models."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

Label = str | int | bool | float
"""A label as submitted. Its type matters: True, 1, 1.0 and "1" are four labels. Compare them by `label_key`."""

Kind = Literal["classification", "regression", "multilabel"]

_to_json: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode


@dataclass(frozen=True, slots=True)
class Example:
    """A labeled row: a text or a pair of texts, and its label.

    The label is a float for a regression; for several labels per text, it is the text that represents their set
    (`onboard.domain.label_set`).
    """

    text_a: str
    text_b: str | None
    label: Label


@dataclass(frozen=True, slots=True)
class Dataset:
    """A checked dataset, from which one version of a task is learned.

    Args:
        kind: classes, numbers on a scale, or any number of labels per row.
        labels: the class labels in order (canonical, or as declared); empty for regression.
        low: smallest training value of a regression, else None.
        high: largest training value of a regression, else None.
        train: training rows in canonical order.
        validation: rows for choices; empty if none were submitted or held out.
        test: rows for the final measurement only; may be empty.
    """

    kind: Kind
    labels: tuple[Label, ...]
    train: tuple[Example, ...]
    validation: tuple[Example, ...] = ()
    test: tuple[Example, ...] = ()
    low: float | None = None
    high: float | None = None

    @property
    def pairs(self) -> bool:
        """Whether the rows are pairs of texts."""
        return any(example.text_b is not None for example in (self.train or self.validation or self.test)[:1])

    @property
    def several_labels(self) -> bool:
        """Whether a row may have any number of labels."""
        return self.kind == "multilabel"

    @property
    def one_row_each(self) -> bool:
        """Whether every class has one training row, which therefore cannot be held out."""
        return self.kind == "classification" and len({label_key(row.label) for row in self.train}) == len(self.train)

    def class_indices(self, examples: Iterable[Example]) -> list[int]:
        """Return the index in `labels` of every example's label.

        Raises:
            KeyError: a label is not in `labels`.
        """
        return class_indices(self.labels, examples)


def class_indices(labels: Sequence[Label], examples: Iterable[Example]) -> list[int]:
    """Return the index in `labels` of every example's label. Raises KeyError: a label is not among them."""
    positions = {label_key(label): index for index, label in enumerate(labels)}
    return [positions[label_key(example.label)] for example in examples]


def label_key(label: Label) -> str:
    """Return the label as JSON, which keeps its type: two labels are the same exactly if their keys are equal."""
    return _to_json(label)


def label_text(label: Label) -> str:
    """Return the label as written on a command line: true, 3, 0.5, or the string itself."""
    return label if isinstance(label, str) else _to_json(label)


def in_canonical_order(labels: Iterable[Label]) -> tuple[Label, ...]:
    """Return the distinct labels: booleans, then numbers by value, then strings by code point."""
    distinct = {label_key(label): label for label in labels}
    return tuple(sorted(distinct.values(), key=_canonical_rank))


def example_key(example: Example) -> str:
    """Return the row as one line of canonical JSON: snapshots store it, digests cover it, and splits are
    ordered by it.
    """
    return _to_json([example.text_a, example.text_b, example.label])


def in_canonical_rows(examples: Sequence[Example]) -> tuple[Example, ...]:
    """Return the rows sorted by canonical JSON, so that the order of a file does not matter."""
    return tuple(sorted(examples, key=example_key))


def _canonical_rank(label: Label) -> tuple[int, float, str]:
    if isinstance(label, bool):
        return (0, float(label), "")
    if isinstance(label, str):
        return (2, 0.0, label)
    return (1, label, label_key(label))
