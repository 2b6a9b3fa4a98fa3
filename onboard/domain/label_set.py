"""Sets of labels, as a task with several labels per text has them: one text stands for a whole set.

A row of such a task has the label `["billing", "refund"]`, its set as JSON in the order of the task's labels. So a set
is compared, hashed, stored and shown as any other label is.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Final

from onboard.domain.dataset import Example, Kind, Label, label_key, label_text

MULTILABEL: Final = "multilabel"
ANSWERED_FROM: Final = 0.5  # score from which a label is part of an answer
_SHOWN: Final = 10  # labels of a set that people are shown


def set_text(labels: Iterable[Label]) -> str:
    """A set of labels as the one text that stands for it; the order is kept."""
    return json.dumps(list(labels), ensure_ascii=False)


def labels_in(text: Label) -> tuple[Label, ...]:
    """The labels of a set. Raises ValueError: the text does not stand for a set."""
    try:
        labels = json.loads(text) if isinstance(text, str) else None
    except ValueError:
        labels = None
    if not isinstance(labels, list) or not all(isinstance(label, str | bool | int | float) for label in labels):
        raise ValueError(f"{text!r} does not stand for a set of labels")
    return tuple(labels)


def labels_of(kind: Kind, label: Label) -> tuple[Label, ...]:
    """The labels of a row: those of its set, or its only one."""
    return labels_in(label) if kind == MULTILABEL else (label,)


def all_labels(kind: Kind, rows: Iterable[Example]) -> list[Label]:
    """Every label of every row, as often as rows have it."""
    return [label for row in rows for label in labels_of(kind, row.label)]


def in_order_of(labels: Sequence[Label], members: Iterable[Label]) -> tuple[Label, ...]:
    """The members of a set in the order of the task's labels, each once. Raises KeyError: one is not among these."""
    places = {label_key(label): place for place, label in enumerate(labels)}
    return tuple(labels[place] for place in sorted({places[label_key(member)] for member in members}))


def chosen_set(labels: Sequence[Label], scores: Iterable[float]) -> tuple[Label, ...]:
    """The labels that scores, one for each, put into the answer."""
    return tuple(label for label, score in zip(labels, scores, strict=True) if score >= ANSWERED_FROM)


def set_shown(text: Label) -> str:
    """A set as people read it: "billing, refund", or "none" where it is empty."""
    labels = [label_text(label) for label in labels_in(text)]
    more = f" and {len(labels) - _SHOWN} more" if len(labels) > _SHOWN else ""
    return ", ".join(labels[:_SHOWN]) + more if labels else "none"
