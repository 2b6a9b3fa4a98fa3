"""Sets of labels, for tasks with several labels per text; one text represents a whole set.

A row of such a task has the label `["billing", "refund"]`, its set as JSON in the order of the task's labels. This way
a set is compared, hashed, stored and shown like any other label.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Final

from onboard.domain.dataset import Example, Kind, Label, label_key, label_text

MULTILABEL: Final = "multilabel"
ANSWERED_FROM: Final = 0.5  # minimum score of a label in the answer
_SHOWN: Final = 10  # labels of a set that are displayed


def set_text(labels: Iterable[Label]) -> str:
    """Return the text that represents a set of labels, in this order."""
    return json.dumps(list(labels), ensure_ascii=False)


def labels_in(text: Label) -> tuple[Label, ...]:
    """Return the labels of a set. Raises ValueError: the text does not represent a set."""
    try:
        labels = json.loads(text) if isinstance(text, str) else None
    except ValueError:
        labels = None
    if not isinstance(labels, list) or not all(isinstance(label, str | bool | int | float) for label in labels):
        raise ValueError(f"{text!r} does not represent a set of labels")
    return tuple(labels)


def is_set(text: Label) -> bool:
    """Return whether a text represents a set of labels."""
    try:
        labels_in(text)
    except ValueError:
        return False
    return True


def labels_of(kind: Kind, label: Label) -> tuple[Label, ...]:
    """Return the labels of a row: those of its set, or its only one."""
    return labels_in(label) if kind == MULTILABEL else (label,)


def all_labels(kind: Kind, rows: Iterable[Example]) -> list[Label]:
    """Return the labels of all rows, with repetitions."""
    return [label for row in rows for label in labels_of(kind, row.label)]


def in_order_of(labels: Sequence[Label], members: Iterable[Label]) -> tuple[Label, ...]:
    """Return the members of a set in the order of the task's labels, without repetitions. Raises KeyError: one is
    unknown.
    """
    places = {label_key(label): place for place, label in enumerate(labels)}
    return tuple(labels[place] for place in sorted({places[label_key(member)] for member in members}))


def chosen_set(labels: Sequence[Label], scores: Iterable[float]) -> tuple[Label, ...]:
    """Return the labels that the scores, one per label, select."""
    return tuple(label for label, score in zip(labels, scores, strict=True) if score >= ANSWERED_FROM)


def set_shown(text: Label) -> str:
    """Return a set for display: "billing, refund", or "none" if it is empty."""
    labels = [label_text(label) for label in labels_in(text)]
    more = f" and {len(labels) - _SHOWN} more" if len(labels) > _SHOWN else ""
    return ", ".join(labels[:_SHOWN]) + more if labels else "none"
