"""Compare two versions of a task by their answers to the same rows: the verdict, and changed answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from onboard.contract.evaluations import ComparisonDocument, Evidence, Flipped, FlippedRow, PairedComparison, Side
from onboard.data.problems import preview
from onboard.domain.dataset import Example, Kind, Label, class_indices, label_key
from onboard.domain.label_set import MULTILABEL, chosen_set, set_text
from onboard.domain.task import EmbeddingVersion

if TYPE_CHECKING:
    import numpy as np

    from onboard.evaluate.intervals import Metric

MOST_FLIPPED_ROWS: Final = 50  # maximum number of rows listed with their texts


@dataclass(frozen=True)
class ChangedAnswers:
    """Answers that changed.

    Args:
        flips: by label and answers, the most frequent first; empty for a regression.
        rows: at most MOST_FLIPPED_ROWS rows, including those with a changed label.
        relabeled: number of shared rows with another label in the later version's dataset; they are not part of the
            verdict.
    """

    flips: tuple[Flipped, ...] = ()
    rows: tuple[FlippedRow, ...] = ()
    relabeled: int = 0


@dataclass(frozen=True)
class Measured:
    """The measurements on shared rows.

    Args:
        comparison: the verdict about the later version, with its paired interval.
        metrics: of the earlier and of the later version, on these rows.
        confusion: matrices (true × predicted), in the order of `labels`; None for a regression.
        left_out: number of further shared rows.
    """

    comparison: PairedComparison
    metrics: tuple[dict[str, Metric], dict[str, Metric]]
    labels: tuple[Label, ...] = ()
    confusion: tuple[list[list[int]], list[list[int]]] | None = None
    left_out: int = 0


@dataclass(frozen=True)
class SideBySide:
    """The comparison of two versions of one task.

    Args:
        earlier, later: the versions; the verdict is about the later one.
        measured: on shared rows; None without evidence.
        reason: the verdict, or why there is none, in one sentence.
        evidence: the kind of rows: rows that neither was trained on, from the versions' datasets or a file; training
            rows with out-of-fold answers; or training rows, for which only changed answers are listed.
        worth: a note if the evidence is weaker than rows that neither was trained on.
    """

    earlier: EmbeddingVersion
    later: EmbeddingVersion
    measured: Measured | None
    reason: str
    evidence: Evidence | None = None
    worth: str | None = None
    changed: ChangedAnswers = ChangedAnswers()

    @property
    def better(self) -> bool:
        """Whether the later version is significantly better; false without evidence."""
        return self.measured is not None and self.measured.comparison.verdict == "better"

    @property
    def worse(self) -> bool:
        """Whether the later version is significantly worse."""
        return self.measured is not None and self.measured.comparison.verdict == "worse"

    def to_document(self) -> ComparisonDocument:
        """Return the document of `compare --json` and GET /v1/tasks/{task}/compare."""
        measured = self.measured
        return ComparisonDocument(
            task=self.later.task,
            earlier=_side(self.earlier, measured, 0),
            later=_side(self.later, measured, 1),
            better=self.better,
            reason=self.reason,
            evidence=self.evidence,
            worth=self.worth,
            comparison=measured.comparison if measured else None,
            labels=measured.labels if measured else (),
            flipped=self.changed.flips,
            flipped_rows=self.changed.rows,
            relabeled=self.changed.relabeled,
            rows_left_out=measured.left_out if measured else 0,
        )


def _side(version: EmbeddingVersion, measured: Measured | None, side: int) -> Side:
    shared = {name: metric.to_json() for name, metric in measured.metrics[side].items()} if measured else None
    confusion = measured.confusion[side] if measured and measured.confusion else None
    return Side.of(version, shared=shared, confusion=confusion)


def truth(rows: Sequence[Example], labels: Sequence[Label], kind: Kind | None = None) -> np.ndarray:
    """Return the true answers of rows.

    That is the label's index (n,); without labels, the number (n,); for sets of labels, 1 for each contained label (n,
    L).
    """
    import numpy as np

    if kind == MULTILABEL:
        from onboard.data.targets import indicators_of

        return indicators_of(labels, rows).astype(np.float64)
    if not labels:
        return np.array([float(row.label) for row in rows])
    return np.array(class_indices(labels, rows), dtype=np.int64)


def measured_on(
    rows: Sequence[Example],
    labels: tuple[Label, ...],
    before: np.ndarray,
    after: np.ndarray,
    left_out: int = 0,
    kind: Kind | None = None,
) -> Measured:
    """Compare two versions' answers.

    Args:
        rows: n rows with their labels.
        labels: of the task, K; empty for a regression.
        before, after: probabilities (n, K), or numbers (n,), of the earlier and the later version.
        left_out: number of further rows.
    """
    from onboard.evaluate.evaluation import evaluate_classification, evaluate_regression
    from onboard.evaluate.metrics import confusion
    from onboard.evaluate.paired import compare_classification, compare_regression

    true = truth(rows, labels, kind)
    if kind == MULTILABEL:
        from onboard.evaluate.sets import compare_sets, evaluate_sets

        sets = evaluate_sets(true, before, labels=labels), evaluate_sets(true, after, labels=labels)
        return Measured(compare_sets(true, before, after), sets, labels, left_out=left_out)
    if not labels:
        numbers = evaluate_regression(true, before), evaluate_regression(true, after)
        return Measured(compare_regression(true, before, after), numbers, left_out=left_out)
    matrices = [confusion(true, probabilities.argmax(1), len(labels)).tolist() for probabilities in (before, after)]
    return Measured(
        compare_classification(true, before, after),
        (evaluate_classification(true, before, labels=labels), evaluate_classification(true, after, labels=labels)),
        labels,
        (matrices[0], matrices[1]),
        left_out,
    )


def changed_answers(
    rows: Sequence[Example],
    labels: tuple[Label, ...],
    before: np.ndarray,
    after: np.ndarray,
    labels_before: Sequence[Label | None] = (),
    kind: Kind | None = None,
) -> ChangedAnswers:
    """Return the changed answers; empty for a regression, where nearly all numbers change.

    Args:
        rows, labels, before, after: as in `measured_on`.
        labels_before: label of each row in the earlier version's dataset if it differs, else None; may be empty.
    """
    if not labels or not len(rows):
        return ChangedAnswers()
    earlier, later = (_answers(labels, scores, kind) for scores in (before, after))
    earlier_labels = labels_before or [None] * len(rows)
    changed = [
        (row, a, b, earlier_label)
        for row, a, b, earlier_label in zip(rows, earlier, later, earlier_labels, strict=True)
        if label_key(a) != label_key(b)
    ]
    named = {label_key(row.label): row.label for row, _, _, _ in changed}
    counts = Counter((label_key(row.label), a, b) for row, a, b, earlier_label in changed if earlier_label is None)
    flips = [Flipped(label=named[key], earlier=a, later=b, count=count) for (key, a, b), count in counts.most_common()]
    relabeled = sum(earlier_label is not None for earlier_label in earlier_labels)
    listed = [
        FlippedRow(**texts_of(row), label_before=earlier_label, earlier=a, later=b)
        for row, a, b, earlier_label in changed[:MOST_FLIPPED_ROWS]
    ]
    return ChangedAnswers(tuple(flips), tuple(listed), relabeled)


def texts_of(row: Example) -> dict[str, Label | None]:
    """Return previews of a row's texts, and its label, for documents."""
    second = None if row.text_b is None else preview(row.text_b)
    return {"text": preview(row.text_a), "text_b": second, "label": row.label}


def _answers(labels: tuple[Label, ...], scores: np.ndarray, kind: Kind | None) -> list[Label]:
    """Return the answer for each row: a label, or the text of a set of labels."""
    if kind == MULTILABEL:
        return [set_text(chosen_set(labels, of_row)) for of_row in scores.tolist()]
    return [labels[place] for place in scores.argmax(1).tolist()]
