"""The evaluate stage of a job: metrics with intervals, baselines, weakness, and whether `latest` moves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Literal

import numpy as np

from onboard.contract.document import Metrics as MetricsDocument
from onboard.contract.evaluations import PairedComparison
from onboard.contract.report import Calibration, Confusion, LatestMove, ValidationKind
from onboard.data.hashes import merged, row_hashes, unseen
from onboard.domain.change import OF_LABELS
from onboard.domain.dataset import Example
from onboard.domain.job import JobSpec
from onboard.domain.names import LATEST, Reference
from onboard.domain.progress import Progress
from onboard.domain.report import CALIBRATION_ERROR
from onboard.domain.task import EmbeddingVersion, label_keys, words_in_order
from onboard.errors import DamagedError, InputError, NotFoundError
from onboard.evaluate.baselines import Baselines, cross_validate_baselines, score_baselines
from onboard.evaluate.crossvalidation import cross_validated
from onboard.evaluate.evaluation import evaluate_classification, evaluate_regression, headline_metric
from onboard.evaluate.intervals import Metric
from onboard.evaluate.metrics import calibration_error, confusion
from onboard.evaluate.paired import compare_classification, compare_regression
from onboard.evaluate.sets import compare_sets, evaluate_sets
from onboard.evaluate.verdicts import Weakness, may_replace, weakness
from onboard.hypernetworks.engines import engine_at
from onboard.model.readout import probabilities_of
from onboard.model.task_weights import Answering
from onboard.pipeline import how_judged
from onboard.pipeline.calibration import temperature_of
from onboard.pipeline.material import Workbench
from onboard.pipeline.outputs import EvaluateOutput, ProbeOutput, TrainOutput
from onboard.pipeline.readout import Together, together
from onboard.pipeline.stored_weights import answering
from onboard.registry.services import Services
from onboard.registry.versions import VersionRepository
from onboard.statistics.temperature import tempered
from onboard.storage.out_of_fold import pack_out_of_fold
from onboard.train.crossvalidation import rows_in_folds
from onboard.versions.answers import answers, task_of_version
from onboard.versions.compare import drawn, too_large
from onboard.versions.compare import held_out as held_out_of
from onboard.versions.trained_rows import TrainedRows, made_of_rows

Metrics = dict[str, Metric]
_RELABELED = "Labels were changed, so `latest` stays until the version is promoted."
_TRIVIAL = {"classification": "majority", "regression": "mean", "multilabel": "commonest_set"}


def judge_briefly(judged: Judged, services: Services) -> EvaluateOutput:
    """Evaluate like `judge`, without baselines that need training, for a version that is published at once."""
    return _judge(judged, services, judged.trivial)


def judge(
    judged: Judged, services: Services, also_chosen: str | None = None, alone: Judged | None = None
) -> EvaluateOutput:
    """Evaluate a trained task.

    Args:
        judged: its predictions.
        services: used to find the current version.
        also_chosen: a sentence on choices, other than start and end of the training, that the validation rows made.
        alone: predictions before the tuning; they decide whether the task is weak if no rows are left to judge it
            later.
    """
    return _judge(judged, services, judged.baselines, also_chosen, alone)


def _judge(
    judged: Judged,
    services: Services,
    baselines: dict[str, Baselines],
    also_chosen: str | None = None,
    alone: Judged | None = None,
) -> EvaluateOutput:
    kind_of_task = judged.bench.dataset.kind
    deciding = headline_metric(kind_of_task, judged.spec.metric)
    validation, kind, reason = judged.validation()
    if validation and also_chosen:
        reason = f"{reason} {also_chosen}" if reason else also_chosen
    test = judged.on("test")
    split = "test" if test else "validation"
    trivial = baselines.get(split, {}).get(_TRIVIAL[kind_of_task])
    weak = weakness(test or validation, trivial, deciding)
    if alone is not None and not weak.judged:
        weak = _weakness_before(alone, deciding)
    headline = (test or validation or {}).get(deciding)
    return EvaluateOutput(
        metric=deciding,
        metrics={"validation": _json(validation) if validation else None, "test": _json(test) if test else None},
        validation_kind=kind,
        validation_reason=reason,
        baselines={
            split: {name: _json(metrics) for name, metrics in of_split.items()} for split, of_split in baselines.items()
        },
        weak=weak.weak,
        weak_reason=weak.reason,
        confusion=judged.confusion(),
        latest=judged.against_present(services, weak.weak),
        calibration=judged.calibration(validation, test),
        numbers={deciding: headline.value if headline else None, "weak": weak.weak},
    )


def _weakness_before(alone: Judged, deciding: str) -> Weakness:
    """Judge weakness before the tuning: a tuned version without evidence must not look like a success."""
    validation, _, _ = alone.validation()
    trivial = alone.trivial.get("validation", {}).get(_TRIVIAL[alone.bench.dataset.kind])
    verdict = weakness(validation, trivial, deciding)
    return replace(verdict, reason=f"Measured before the tuning. {verdict.reason}")


def _json(metrics: Metrics) -> MetricsDocument:
    return {name: metric.to_json() for name, metric in metrics.items()}


class Judged:
    """Predictions of a trained task by split; each is computed once.

    Args:
        bench: the job's material, under the hypernetwork of the version.
        spec: supplies the task and the deciding metric.
        probed, trained: outputs of those stages.
        progress: stops the work when the job is cancelled.
        no_estimate: why the tuning left no folds, if it did.
    """

    def __init__(
        self,
        bench: Workbench,
        spec: JobSpec,
        probed: ProbeOutput,
        trained: TrainOutput,
        progress: Progress,
        no_estimate: str | None = None,
    ) -> None:
        self.bench, self.spec, self._trained, self._progress = bench, spec, trained, progress
        self._words, self._no_estimate = probed.words, no_estimate
        self._start = probed.init.weights or [probed.init.chosen or ""]
        self._splits = {"validation": bench.dataset.validation, "test": bench.dataset.test}
        self._made: dict[str, np.ndarray] = {}

    @cached_property
    def _task(self) -> Answering:
        return answering(self.bench.engine, self._trained)

    @cached_property
    def together(self) -> Together:
        """Return the readout with its share, if any, and the combined out-of-fold predictions."""
        checkpoint = self._progress.raise_if_cancelled_or_fenced
        return together(self.bench, self._words, self._trained, self._task, self.spec.readout, checkpoint)

    def _answered(self, split: str) -> tuple[Sequence[Example], np.ndarray]:
        """Return rows and their probabilities before temperature; "validation" without rows uses the folds."""
        if rows := self._splits[split]:
            return rows, self._probabilities(split)
        folds = self.together.folds
        assert folds is not None  # callers check that the training has folds
        return rows_in_folds(self.bench.dataset, folds.fold), folds.probabilities

    def on(self, split: str) -> Metrics | None:
        """Return metrics on the held-out rows of "validation" or "test"; None without rows."""
        if not (rows := self._splits[split]):
            return None
        return self._measured(rows, self.tempered(self._probabilities(split)))

    @cached_property
    def _temperature(self) -> tuple[float, str, int]:
        return temperature_of(self.bench, self.together.folds, lambda rows: self._probabilities("validation")[rows])

    def tempered(self, probabilities: np.ndarray) -> np.ndarray:
        """Apply the fitted temperature to probabilities of `predict`."""
        return tempered(probabilities, self._temperature[0])

    def calibration(self, validation: Metrics | None, test: Metrics | None) -> Calibration | None:
        """Return temperature and calibration error; None except for classification.

        Args:
            validation, test: metrics of the version, if there are rows.
        """
        if self.bench.dataset.kind != "classification":
            return None
        temperature, evidence, rows = self._temperature
        measured = {"validation": validation, "test": test}
        after = {split: of_split[CALIBRATION_ERROR].value for split, of_split in measured.items() if of_split}
        before = {split: self._error_untempered(split) for split in after}
        return Calibration(temperature=temperature, evidence=evidence, rows=rows, before=before, after=after)

    def _error_untempered(self, split: str) -> float:
        rows, probabilities = self._answered(split)
        return calibration_error(self._truth(rows), probabilities)

    def validation(self) -> tuple[Metrics | None, ValidationKind | None, str | None]:
        """Return validation metrics, the kind of validation, and a note about it, or the reason if there is none."""
        dataset, trained = self.bench.dataset, self._trained
        if dataset.validation:
            return self.on("validation"), "held-out", how_judged.on_held_out_rows(trained, self.together.facts)
        if not dataset.train:
            return None, None, how_judged.NO_ROWS
        if dataset.one_row_each:
            return None, None, how_judged.ONE_ROW_EACH
        if trained.folds is None:
            known = self.bench.left_out.get("validation", 0)
            return None, None, self._no_estimate or how_judged.too_few(len(dataset.train), known)
        rows, probabilities = self._answered("validation")
        metrics = cross_validated(self._measured(rows, self.tempered(probabilities)))
        with_readout = self.together.readout is not None
        reason = how_judged.in_folds(trained, len(rows), len(dataset.train), with_readout=with_readout)
        return metrics, "cross-validated", reason

    def out_of_fold(self) -> str | None:
        """Return the packed out-of-fold predictions of training rows; None without folds."""
        if self._splits["validation"] or self._trained.folds is None:
            return None
        rows, probabilities = self._answered("validation")
        regression = self.bench.buckets is not None
        answers = self._expectation(probabilities)[:, None] if regression else self.tempered(probabilities)
        return pack_out_of_fold(row_hashes(rows), answers)

    def left_out(self) -> tuple[np.ndarray | None, bool]:
        """Probabilities (n, K) of rows that were left out, None without any; and whether the version itself gave them.

        Without validation rows they are those of the folds' models.
        """
        if not self._splits["validation"] and self._trained.folds is None:
            return None, False
        _, probabilities = self._answered("validation")
        return self.tempered(probabilities), bool(self._splits["validation"])

    def _measured(self, rows: Sequence[Example], probabilities: np.ndarray) -> Metrics:
        if self.bench.buckets is not None:
            return evaluate_regression(_values(rows), self._expectation(probabilities), self.spec.metric)
        labels = self.bench.dataset.labels
        if self.bench.dataset.several_labels:
            return evaluate_sets(self.bench.targets(rows), probabilities, self.spec.metric, labels)
        return evaluate_classification(self._truth(rows), probabilities, self.spec.metric, labels)

    @cached_property
    def baselines(self) -> dict[str, Baselines]:
        """Train majority and TF-IDF on the same rows, and score them on the same rows, by split."""
        return self._baselines(learned=True)

    @cached_property
    def trivial(self) -> dict[str, Baselines]:
        """Return the baselines that need no training."""
        return self._baselines(learned=False)

    def _baselines(self, *, learned: bool) -> dict[str, Baselines]:
        dataset, folds, metric = self.bench.dataset, self._trained.folds, self.spec.metric
        learned = learned and bool(dataset.train)  # without rows there is nothing to train on
        baselines: dict[str, Baselines] = {}
        if dataset.validation:
            baselines["validation"] = score_baselines(dataset, dataset.validation, metric=metric, learned=learned)
        elif folds is not None:
            baselines["validation"] = cross_validate_baselines(dataset, folds.fold, metric=metric, learned=learned)
        if dataset.test:
            baselines["test"] = score_baselines(dataset, dataset.test, metric=metric, learned=learned)
        return baselines

    def confusion(self) -> Confusion | None:
        """Return a confusion matrix of held-out or out-of-fold rows; None without rows and except for
        classification.
        """
        split: Literal["test", "validation"] = "test" if self._splits["test"] else "validation"
        kind = self.bench.dataset.kind
        if kind != "classification" or not (self._splits[split] or self._trained.folds):
            return None
        labels, (rows, probabilities) = self.bench.dataset.labels, self._answered(split)
        matrix = confusion(self._truth(rows), probabilities.argmax(1), len(labels))
        return Confusion(labels=labels, matrix=matrix.tolist(), split=split)

    def against_present(self, services: Services, weak: bool) -> LatestMove:
        """Decide whether `latest` may move, by comparing both versions on held-out rows that neither was trained on."""
        try:
            with services.database.read() as session:
                present = VersionRepository(session).resolve(Reference(self.spec.task))
        except NotFoundError:
            return LatestMove(alias=LATEST, moved=True, reason="It is the first version.", comparison=None)
        if self._relabeled(present):
            return stays(_RELABELED, present)
        try:
            comparison = self._compare(services, present)
        except (DamagedError, InputError) as error:  # the second is for a method that this release does not support
            reason = f"{present.reference} cannot be read for the comparison. {error.outside.message}"
            return stays(reason, present)
        verdict = may_replace(
            comparison, weak=weak, predecessor_weak=present.weak, predecessor_unmeasured=present.unmeasured,
            from_labels_alone=not self.bench.dataset.train and made_of_rows(services, present),
        )  # fmt: skip
        return LatestMove(
            alias=LATEST, moved=verdict.allowed, reason=verdict.reason, comparison=comparison,
            present=present.reference,
        )  # fmt: skip

    def _relabeled(self, present: EmbeddingVersion) -> bool:
        """Return whether corrected labels changed this task: its users then decide when to follow."""
        change, labels = self.spec.change, label_keys(self.bench.dataset.labels)
        return change is not None and (change["action"] in OF_LABELS or not label_keys(present.labels) <= labels)

    def _compare(self, services: Services, present: EmbeddingVersion) -> PairedComparison | None:
        bench = self.bench
        alike = label_keys(present.labels) == label_keys(bench.dataset.labels)
        alike = alike and present.task_kind == bench.dataset.kind
        if present.base_digest != bench.base.digest or not alike:
            return None
        rows = self._shared_rows(services, present)
        if not rows:
            return None
        its_own = engine_at(services, bench.base, present.hypernetwork_version)
        task, readout = task_of_version(services, its_own, present, bench.dataset.labels)
        read = None if readout is None else bench.features(rows, self._progress.raise_if_cancelled_or_fenced)
        before = answers(its_own, present, task, words_in_order(present, bench.dataset.labels), rows, readout, read)
        after = self.tempered(self.predict(rows))
        if bench.buckets is not None:
            return compare_regression(_values(rows), before, self._expectation(after))
        if bench.dataset.several_labels:
            return compare_sets(bench.targets(rows), before, after)
        return compare_classification(self._truth(rows), before, after)

    def _shared_rows(self, services: Services, present: EmbeddingVersion) -> Sequence[Example]:
        """Return the rows that `onboard compare` will use after publication: held out of both, known to neither."""
        bench = self.bench
        its_own = {} if too_large(services, present) else held_out_of(services, present)
        splits = (of_version.get(name, ()) for of_version in (self._splits, its_own) for name in ("test", "validation"))
        rows = [row for of_split in splits for row in of_split]
        trained = TrainedRows(services, bench.base)
        known = [
            trained.of(present, exactly=True), trained.of_start(self._start), trained.tuning(bench.head, exactly=True),
            bench.hashes(bench.dataset.train),
        ]  # fmt: skip
        return drawn(unseen(rows, merged(known)))

    def _probabilities(self, split: str) -> np.ndarray:
        if split not in self._made:
            self._made[split] = self.predict(self._splits[split])
        return self._made[split]

    def predict(self, rows: Sequence[Example]) -> np.ndarray:
        """Return probabilities (n, K) of the embedding and the readout combined, before temperature."""
        engine, readout = self.bench.engine, self.together.readout
        if self._trained.is_readout and readout is not None:
            return readout.probabilities(self.bench.features(rows, self._progress.raise_if_cancelled_or_fenced))
        checkpoint, ids = self._progress.raise_if_cancelled_or_fenced, self.bench.encode(rows)
        trie, at_once = engine.trie(self._words), self.bench.scored_at_once
        return probabilities_of(engine, ids, self._task, trie, readout, checkpoint, at_once)

    def _expectation(self, probabilities: np.ndarray) -> np.ndarray:
        assert self.bench.buckets is not None
        values: np.ndarray = probabilities @ np.array(self.bench.buckets.values)
        return values

    def _truth(self, rows: Sequence[Example]) -> np.ndarray:
        return np.array(self.bench.dataset.class_indices(rows), dtype=np.int64)


def stays(reason: str, present: EmbeddingVersion) -> LatestMove:
    """Return that `latest` keeps naming this version, and why."""
    return LatestMove(alias=LATEST, moved=False, reason=reason, comparison=None, present=present.reference)


def _values(rows: Sequence[Example]) -> np.ndarray:
    return np.array([float(row.label) for row in rows])
