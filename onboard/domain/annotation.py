"""Annotations of texts, as a labeling tool sends them while people label."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from onboard.domain.dataset import in_canonical_order
from onboard.domain.label_set import is_set, labels_in, set_text

DELETED_AT: Final = 1e15  # an annotation that was deleted stays so, whatever arrives later: after every moment

Text = tuple[str, str | None]  # a text, or a pair of them


@dataclass(frozen=True, slots=True)
class Annotation:
    """One annotation of a text.

    Args:
        project: of the tool.
        number: of the annotation in the tool.
        text: that was labeled; None where only the number is known, as of one that was deleted.
        label: or the text that represents a set of labels; None where there is none (any more): it was deleted or
            skipped.
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
    """Return the label of every text on which annotators agree: the one that more than half of them gave.

    If annotators chose several labels for a text, its label is the set of those that more than half of them gave.
    """
    given: dict[Text, list[str]] = {}
    for annotation in annotations:
        if annotation.text is not None and annotation.label is not None:
            given.setdefault(annotation.text, []).append(annotation.label)
    agreed = {
        text: _agreed_set(labels) if any(map(is_set, labels)) else _agreed(labels) for text, labels in given.items()
    }
    return {text: label for text, label in agreed.items() if label is not None}


def have_sets(labels: Iterable[str]) -> bool:
    """Return whether some of these labels of texts are sets."""
    return any(map(is_set, labels))


def as_sets(labels: Mapping[Text, str]) -> Mapping[Text, str]:
    """Return labels of texts with a set of one in place of each single label."""
    return {text: label if is_set(label) else set_text((label,)) for text, label in labels.items()}


def without_sets(labels: Mapping[Text, str]) -> Mapping[Text, str]:
    """Return the texts with a single label."""
    return {text: label for text, label in labels.items() if not is_set(label)}


def _agreed(labels: Sequence[str]) -> str | None:
    ((label, most),) = Counter(labels).most_common(1)
    return label if most * 2 > len(labels) else None


def _agreed_set(labels: Sequence[str]) -> str | None:
    """Return the set of the labels that more than half gave; None if there are none."""
    sets = [labels_in(label) if is_set(label) else (label,) for label in labels]
    counts = Counter(label for members in sets for label in members)
    agreed = in_canonical_order(label for label, count in counts.items() if count * 2 > len(sets))
    return set_text(agreed) if agreed else None


def texts_to_remove(annotations: Iterable[Annotation]) -> tuple[Text, ...]:
    """The texts that a version was made with and that nobody labels any more."""
    known = tuple(annotations)
    labeled = {annotation.text for annotation in known if annotation.label is not None}
    gone = (annotation.text for annotation in known if annotation.published and annotation.text not in labeled)
    return tuple(dict.fromkeys(text for text in gone if text is not None))
