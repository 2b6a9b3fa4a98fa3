"""Scores per label: precision, recall, F1, and which labels are hardly ever predicted."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from onboard.domain.counting import counted
from onboard.domain.dataset import Label, label_text

FEWEST_ROWS: Final = 3  # of a label; with fewer, even good versions miss one or two
HARDLY: Final = 0.25  # answers per row of a label; up to this, it is hardly ever predicted
MOST_NAMED: Final = 3  # labels per sentence


@dataclass(frozen=True, slots=True)
class LabelScore:
    """One label with `rows` labeled rows; `answers` predict it, `right` of them correctly."""

    label: Label
    rows: int
    answers: int
    right: int

    @property
    def precision(self) -> float | None:
        """Share of its answers that are right; None if there are none."""
        return self.right / self.answers if self.answers else None

    @property
    def recall(self) -> float | None:
        """Share of its rows that are predicted; None if there are none."""
        return self.right / self.rows if self.rows else None

    @property
    def f1(self) -> float | None:
        """Harmonic mean of both; None if the label is neither predicted nor true."""
        both = self.rows + self.answers
        return 2 * self.right / both if both else None

    @property
    def never_answered(self) -> bool:
        """Whether it has enough rows and was never predicted."""
        return self.rows >= FEWEST_ROWS and not self.answers

    @property
    def hardly_answered(self) -> bool:
        """Whether it is predicted, but far less often than it is true."""
        return self.rows >= FEWEST_ROWS and 0 < self.answers <= HARDLY * self.rows


def label_scores(metrics: Mapping[str, Any] | None) -> list[LabelScore]:
    """Return the labels of one split's metrics; empty if they do not list labels, like those of earlier versions.

    Args:
        metrics: by name, from a version or a job's document; the labels are part of macro-F1, their mean.
    """
    macro_f1 = (metrics or {}).get("macro_f1")
    documents = macro_f1.get("labels") if isinstance(macro_f1, Mapping) else None
    if not isinstance(documents, Sequence):
        return []
    counts = "rows", "answers", "right"
    return [
        LabelScore(document["label"], *(document[count] for count in counts))
        for document in documents
        if isinstance(document, Mapping)
        and isinstance(document.get("label"), Label)
        and all(isinstance(document.get(count), int) for count in counts)
    ]


def neglected(scores: Sequence[LabelScore]) -> list[LabelScore]:
    """Return the labels that are never predicted, then those that hardly ever are, each by number of rows."""
    neglect = [score for score in scores if score.never_answered or score.hardly_answered]
    return sorted(neglect, key=lambda score: (score.answers > 0, -score.rows))


def collapsed(scores: Sequence[LabelScore]) -> bool:
    """Return whether every text gets the same answer although enough rows have another label."""
    return sum(score.answers > 0 for score in scores) == 1 and any(score.never_answered for score in scores)


def neglect_sentence(scores: Sequence[LabelScore], name: Callable[[Label], str] = label_text) -> str:
    """Describe which labels are never or hardly ever predicted; "" if there are none."""
    labels = neglected(scores)
    answered = [score for score in scores if score.answers]
    never, hardly = ([score for score in labels if bool(score.answers) is some] for some in (False, True))
    parts = []
    if never:
        unanswered = [f"{name(score.label)} ({counted(score.rows, 'row')})" for score in never]
        parts.append(f"never answers {_listed(unanswered)}")
    if hardly:
        seldom = [f"{name(score.label)} ({score.answers} of {counted(score.rows, 'row')})" for score in hardly]
        parts.append(f"hardly ever answers {_listed(seldom)}")
    if collapsed(scores):
        return f"It gives every text the same answer, {name(answered[0].label)}, and {parts[0]}."
    return f"It {' and '.join(parts)}." if parts else ""


def _listed(parts: Sequence[str]) -> str:
    if len(parts) > MOST_NAMED:
        return f"{len(parts)} labels, among them {', '.join(parts[:MOST_NAMED])}"
    return " and ".join(filter(None, (", ".join(parts[:-1]), parts[-1])))
