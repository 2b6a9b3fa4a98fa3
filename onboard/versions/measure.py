"""Use case: evaluate a version on a file of labeled rows."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from onboard.contract.evaluations import Commonest, EvaluationDocument, MistakenRow
from onboard.data.labelled import CheckedRows, Takes, read_labelled
from onboard.domain.counting import counted
from onboard.domain.dataset import Example, label_text
from onboard.domain.evaluation import Evaluation
from onboard.domain.label_set import MULTILABEL, chosen_set, set_shown, set_text
from onboard.domain.report import METRICS
from onboard.domain.task import EmbeddingVersion
from onboard.errors import UnavailableError
from onboard.hypernetworks.files import Manifests, require_base
from onboard.registry.services import Services
from onboard.registry.versions import VersionRepository
from onboard.versions.compare import RETRY_SECONDS, TURN, answered_by, drawn, one_at_a_time, unseen_by
from onboard.versions.side_by_side import texts_of, truth

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np

    from onboard.evaluate.intervals import Metric

MOST_MISTAKES: Final = 50  # maximum number of listed rows


@dataclass(frozen=True)
class Evaluated:
    """The evaluation of a version on a file.

    Args:
        rows: number of answered rows; `left_out` further rows were not answered, and `trained` rows trained the
            version.
        metrics: on these rows; empty without any.
        confusion: true × predicted, in the order of `version.labels`; None for a regression or without rows.
        commonest: the most frequent label, or set of labels, of these rows, and its share.
        mistakes: at most MOST_MISTAKES, most confident first.
    """

    version: EmbeddingVersion
    file: CheckedRows
    rows: int
    left_out: int
    trained: int
    metrics: dict[str, Metric]
    confusion: list[list[int]] | None = None
    commonest: Commonest | None = None
    mistakes: tuple[MistakenRow, ...] = ()

    def to_document(self) -> EvaluationDocument:
        """Return the document of `evaluate --json` and POST /v1/tasks/{task}/evaluate."""
        return EvaluationDocument(
            task=self.version.task,
            version=self.version.version,
            weak=self.version.weak,
            kind=self.version.task_kind,
            rows=self.rows,
            rows_left_out=self.left_out,
            rows_trained_on=self.trained,
            reason=self.sentence,
            metrics={name: metric.to_json() for name, metric in self.metrics.items()},
            labels=self.version.labels,
            confusion=self.confusion,
            commonest=self.commonest,
            mistakes=self.mistakes,
            warnings=tuple(finding.to_json() for finding in self.file.findings),
        )

    @property
    def sentence(self) -> str:
        """The result in one or two sentences."""
        not_measured = f" {counted(self.trained, 'row')} that it was trained on were skipped." if self.trained else ""
        if self.left_out:
            not_measured += (
                " A server evaluates no more rows at a time; `onboard evaluate` next to the database evaluates all."
            )
        if not self.rows:
            return f"{self.version.reference} was trained on every row of {self.file.source}."
        name = METRICS[self.version.task_kind][0]
        metric, on_rows = self.metrics[name], f"on {counted(self.rows, 'row')}"
        more = f", drawn from {self.rows + self.left_out:,}" if self.left_out else ""
        shown = f"{metric.value:.3f}"
        if metric.low is not None and metric.high is not None:
            shown += f" (95%: {metric.low:.3f} to {metric.high:.3f})"
        summary = before = f"{self.version.reference} has {name} {shown} {on_rows}{more}."
        if self.commonest is not None:
            summary += f" Always answering {label_text(self.commonest.label)} would have {self.commonest.share:.3f}."
            if self.version.task_kind == MULTILABEL:
                always, exact = set_shown(self.commonest.label), self.metrics["exact_match"].value
                summary = f"{before} Its set is exactly right for {exact:.3f} of them; always answering "
                summary += f"{always} for {self.commonest.share:.3f}."
        return summary + not_measured


def evaluate(services: Services, reference: str, asked: Evaluation) -> Evaluated:
    """Evaluate a version on all rows of a file that it was not trained on.

    Args:
        reference: TASK[@REF].
        asked: the file and how it is read.

    Raises:
        InputError, DatasetError: the reference is invalid, or rows do not fit the task.
        NotFoundError: the version does not exist.
        PinMismatchError: the base is not available.
        DamagedError: stored bytes are missing or do not match their digest.
        UnavailableError: this process is already comparing or measuring versions.
    """
    with services.database.read() as session:
        version = VersionRepository(session).resolve(reference)
    return evaluate_version(services, version, read_labelled(asked, takes_of(version)), bounded=False)


def takes_of(version: EmbeddingVersion) -> Takes:
    """Return the inputs and answers of a version, for `read_labelled`."""
    return Takes(version.labels, version.low, version.high, version.pairs, version.task_kind == MULTILABEL)


def evaluate_version(
    services: Services,
    version: EmbeddingVersion,
    file: CheckedRows,
    manifests: Manifests | None = None,
    *,
    bounded: bool = True,
) -> Evaluated:
    """Evaluate a resolved version on rows that were already read.

    Args:
        manifests: manifests of bases that were already read; without them the whole base is read.
        bounded: answer at most `compare.MOST_ROWS` rows, so that a server stays responsive.
    """
    with one_at_a_time(TURN, UnavailableError("measuring-busy", retry_after_seconds=RETRY_SECONDS)):
        base = require_base(services, version, manifests)
        fresh = unseen_by(services, base, [version], file.rows)
        rows = drawn(fresh) if bounded else fresh
        numbers = len(rows), len(fresh) - len(rows), len(file.rows) - len(fresh)
        if not rows:
            return Evaluated(version, file, *numbers, metrics={})
        from onboard.hypernetworks.engines import engine_at

        engine = engine_at(services, base, version.hypernetwork_version)
        answers = answered_by(services, engine, version, version.labels, rows)
    return _measured(version, file, numbers, rows, answers)


def _measured(
    version: EmbeddingVersion,
    file: CheckedRows,
    numbers: tuple[int, int, int],
    rows: Sequence[Example],
    answers: np.ndarray,
) -> Evaluated:
    import numpy as np

    from onboard.evaluate.evaluation import evaluate_classification, evaluate_regression
    from onboard.evaluate.metrics import confusion

    labels, true = version.labels, truth(rows, version.labels, version.task_kind)
    if version.task_kind == MULTILABEL:
        return _measured_sets(version, file, numbers, rows, answers)
    if not labels:
        return Evaluated(version, file, *numbers, metrics=evaluate_regression(true, answers))
    predicted, sure = answers.argmax(1), answers.max(1)
    counts = np.bincount(true, minlength=len(labels))
    wrong = sorted(np.flatnonzero(predicted != true).tolist(), key=lambda row: -sure[row])[:MOST_MISTAKES]
    return Evaluated(
        version, file, *numbers,
        metrics=evaluate_classification(true, answers, labels=labels),
        confusion=confusion(true, predicted, len(labels)).tolist(),
        commonest=Commonest(label=labels[int(counts.argmax())], share=float(counts.max() / len(rows))),
        mistakes=tuple(
            MistakenRow(**texts_of(rows[row]), answer=labels[predicted[row]], probability=float(sure[row]))
            for row in wrong
        ),
    )  # fmt: skip


def _measured_sets(
    version: EmbeddingVersion,
    file: CheckedRows,
    numbers: tuple[int, int, int],
    rows: Sequence[Example],
    scores: np.ndarray,
) -> Evaluated:
    """Evaluate a task with several labels per text. A mistake is a set that is not exactly right."""
    import numpy as np

    from onboard.evaluate.sets import answered_sets, evaluate_sets

    labels = version.labels
    true = truth(rows, labels, version.task_kind)
    sure = np.maximum(scores, 1 - scores).min(1)
    wrong = np.flatnonzero((answered_sets(scores) != true).any(1))
    listed = sorted(wrong.tolist(), key=lambda row: -sure[row])[:MOST_MISTAKES]
    (commonest, count), *_ = Counter(row.label for row in rows).most_common(1)
    return Evaluated(
        version, file, *numbers,
        metrics=evaluate_sets(true, scores, labels=labels),
        commonest=Commonest(label=commonest, share=count / len(rows)),
        mistakes=tuple(
            MistakenRow(
                **texts_of(rows[row]), answer=set_text(chosen_set(labels, scores[row].tolist())),
                probability=float(sure[row]),
            )
            for row in listed
        ),
    )  # fmt: skip
