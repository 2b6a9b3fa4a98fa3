"""Two versions of one task after both have answered the same rows: the verdict, and which answers changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from onboard.data.problems import preview
from onboard.domain.dataset import Example, Kind, Label, class_indices, label_key
from onboard.domain.label_set import MULTILABEL, chosen_set, set_text
from onboard.domain.task import EmbeddingVersion

if TYPE_CHECKING:
    import numpy as np

    from onboard.evaluate.intervals import Metric
    from onboard.evaluate.paired import Comparison

Evidence = Literal["held-out", "file", "cross-validated", "training"]
MOST_FLIPPED_ROWS: Final = 50  # that are listed with their texts


@dataclass(frozen=True)
class Flip:
    """Rows of one label whose answer changed: what the earlier and the later version say, and how many rows."""

    label: Label
    earlier: Label
    later: Label
    count: int

    def to_json(self) -> dict[str, Any]:
        """label, a, b, count."""
        return {"label": self.label, "a": self.earlier, "b": self.later, "count": self.count}


@dataclass(frozen=True)
class FlippedRow:
    """A row whose answer changed.

    Args:
        example: its texts, and the label that it has in the later version's dataset.
        label_before: its label in the earlier version's dataset, where that is another one; else None.
    """

    example: Example
    earlier: Label
    later: Label
    label_before: Label | None = None

    def to_json(self) -> dict[str, Any]:
        """The beginnings of the texts, label, label_before, a, b."""
        second = self.example.text_b
        return {
            "text": preview(self.example.text_a),
            "text_b": None if second is None else preview(second),
            "label": self.example.label,
            "label_before": self.label_before,
            "a": self.earlier,
            "b": self.later,
        }


@dataclass(frozen=True)
class Changed:
    """Answers that changed.

    Args:
        flips: by label and answers, the most frequent first; empty for a regression.
        rows: the rows, those of a changed label too; MOST_FLIPPED_ROWS at most.
        relabeled: how many shared rows have another label in the later version's dataset; no verdict counts them.
    """

    flips: tuple[Flip, ...] = ()
    rows: tuple[FlippedRow, ...] = ()
    relabeled: int = 0


@dataclass(frozen=True)
class Measured:
    """What was found on the shared rows.

    Args:
        comparison: the verdict about the later version, with its paired interval.
        metrics: of the earlier and of the later version, on these rows.
        confusion: matrices (true × predicted), in the order of `labels`; None for a regression.
        left_out: how many more shared rows there are.
    """

    comparison: Comparison
    metrics: tuple[dict[str, Metric], dict[str, Metric]]
    labels: tuple[Label, ...] = ()
    confusion: tuple[list[list[int]], list[list[int]]] | None = None
    left_out: int = 0


@dataclass(frozen=True)
class SideBySide:
    """Two versions of one task.

    Args:
        earlier, later: what is compared; the verdict is about the later one.
        measured: on shared rows; None where nothing says which is better.
        reason: the verdict, or why there is none, in one sentence.
        evidence: the kind of rows: that neither was trained on, of the versions' datasets or of a file; training rows
            that were answered without themselves; or training rows, on which only changed answers are listed.
        worth: how far the evidence can be trusted, where that is less than for rows that neither was trained on.
        changed: the answers that changed.
    """

    earlier: EmbeddingVersion
    later: EmbeddingVersion
    measured: Measured | None
    reason: str
    evidence: Evidence | None = None
    worth: str | None = None
    changed: Changed = Changed()

    @property
    def better(self) -> bool:
        """Whether the later version is significantly better. Without evidence it is not."""
        return self.measured is not None and self.measured.comparison.verdict == "better"

    @property
    def worse(self) -> bool:
        """Whether the later version is significantly worse."""
        return self.measured is not None and self.measured.comparison.verdict == "worse"

    def to_json(self) -> dict[str, Any]:
        """The document of `compare --json` and of GET /v1/tasks/{task}/compare."""
        measured = self.measured
        return {
            "task": self.later.task,
            "a": _side(self.earlier, measured, 0),
            "b": _side(self.later, measured, 1),
            "better": self.better,
            "reason": self.reason,
            "evidence": self.evidence,
            "worth": self.worth,
            "comparison": measured.comparison.to_json() if measured else None,
            "labels": list(measured.labels) if measured else [],
            "flipped": [flip.to_json() for flip in self.changed.flips],
            "flipped_rows": [row.to_json() for row in self.changed.rows],
            "relabeled": self.changed.relabeled,
            "rows_left_out": measured.left_out if measured else 0,
        }


def _side(version: EmbeddingVersion, measured: Measured | None, side: int) -> dict[str, Any]:
    shared = {name: metric.to_json() for name, metric in measured.metrics[side].items()} if measured else None
    return {
        "version": version.version,
        "method": version.method,
        "stored_bytes": version.stored_bytes,
        "embedding_digest": version.embedding_digest,
        "dataset_digest": version.dataset_digest,
        "parent": version.parent,
        "weak": version.weak,
        "metrics": version.metrics,
        "shared": shared,
        "confusion": measured.confusion[side] if measured and measured.confusion else None,
    }


def truth(rows: Sequence[Example], labels: Sequence[Label], kind: Kind | None = None) -> np.ndarray:
    """Class of each row by its place in `labels` (n,); without labels, its number (n,); of sets of labels 1 for each
    that it has (n, L)."""
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
    """The verdict of two versions' answers.

    Args:
        rows: n rows with their labels.
        labels: of the task, K; empty for a regression.
        before, after: probabilities (n, K), or numbers (n,), of the earlier and the later version.
        left_out: how many more rows there are.
        kind: of the task.
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
) -> Changed:
    """Which answers changed; none of a regression, whose numbers nearly all do.

    Args:
        rows, labels, before, after: as of `measured_on`.
        labels_before: of each row its label in the earlier version's dataset, where that is another one; may be empty.
    """
    if not labels or not len(rows):
        return Changed()
    earlier, later = (_answers(labels, scores, kind) for scores in (before, after))
    others = labels_before or [None] * len(rows)
    flipped = [
        FlippedRow(row, a, b, other)
        for row, a, b, other in zip(rows, earlier, later, others, strict=True)
        if label_key(a) != label_key(b)
    ]
    named = {label_key(row.example.label): row.example.label for row in flipped}
    counts = Counter(
        (label_key(row.example.label), row.earlier, row.later) for row in flipped if row.label_before is None
    )
    flips = [Flip(named[key], a, b, count) for (key, a, b), count in counts.most_common()]
    relabeled = sum(other is not None for other in others)
    return Changed(tuple(flips), tuple(flipped[:MOST_FLIPPED_ROWS]), relabeled)


def _answers(labels: tuple[Label, ...], scores: np.ndarray, kind: Kind | None) -> list[Label]:
    """What is answered to each row: a label, or the text that stands for a set of them."""
    if kind == MULTILABEL:
        return [set_text(chosen_set(labels, of_row)) for of_row in scores.tolist()]
    return [labels[place] for place in scores.argmax(1).tolist()]
