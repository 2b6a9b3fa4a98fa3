"""Annotations of texts, as a labeling tool sends them while people label."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

DELETED_AT: Final = 1e15  # an annotation that was deleted stays so, whatever arrives later: after every moment

Text = tuple[str, str | None]  # a text, or a pair of them


@dataclass(frozen=True, slots=True)
class Annotation:
    """One annotation of a text.

    Args:
        project: of the tool.
        number: of the annotation in the tool.
        text: that was labeled; None where only the number is known, as of one that was deleted.
        label: None where there is none (any more): it was deleted or skipped.
        updated_at: epoch seconds by the tool's clock; of two messages about an annotation the later one counts.
        published: whether a version of the task was made with its text.
    """

    project: str
    number: str
    text: Text | None
    label: str | None
    updated_at: float
    published: bool = False


def labels_of_texts(annotations: Iterable[Annotation]) -> Mapping[Text, str]:
    """The label of every text that has one; of several annotators' the one that more than half gave."""
    given: dict[Text, Counter[str]] = {}
    for annotation in annotations:
        if annotation.text is not None and annotation.label is not None:
            given.setdefault(annotation.text, Counter())[annotation.label] += 1
    settled = {}
    for text, counts in given.items():
        ((label, most),) = counts.most_common(1)
        if most * 2 > counts.total():
            settled[text] = label
    return settled


def texts_to_remove(annotations: Iterable[Annotation]) -> tuple[Text, ...]:
    """The texts that a version was made with and that nobody labels any more."""
    known = tuple(annotations)
    labeled = {annotation.text for annotation in known if annotation.label is not None}
    gone = (annotation.text for annotation in known if annotation.published and annotation.text not in labeled)
    return tuple(dict.fromkeys(text for text in gone if text is not None))
