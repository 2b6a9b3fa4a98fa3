"""The tune stage of a job: train hypernetwork and embedding together, if requested or worthwhile."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any, Final

import numpy as np

from onboard.contract.guard import Tuning
from onboard.domain.dataset import Example
from onboard.errors import CancelledError, JobFailedError, OutOfMemoryError
from onboard.guard import GuardSettings
from onboard.guard.canaries import canary_ids
from onboard.hypernetworks.engines import store_hypernetwork
from onboard.model.batch import LabelledRows, TrainingSet
from onboard.model.protected import Protection
from onboard.pipeline.attempt import Attempt
from onboard.pipeline.evaluate import Judged, Metrics
from onboard.pipeline.evidence import HELD, PREDICTED, beside_held, beside_in_folds, fitted_rows, held_rows
from onboard.pipeline.outputs import Folds, NoStep, ProbeOutput, ProposedStep, TrainOutput, TuneOutput
from onboard.pipeline.rebuilding import require_turn_to_tune
from onboard.train.crossvalidation import log_of
from onboard.train.settings import SHARES, TuningSettings
from onboard.train.step_length import NEARLY, LossByShare, parts_of, tuned_out_of_fold
from onboard.train.tuning import Tuned, tune
from onboard.train.worth_tuning import EmbeddingAlone, Worth, worth_tuning
from onboard.versions.protected import protected, protected_task

_BOTH: Final = "The embedding with its readout"
_HARDLY: Final = NEARLY / 4  # minimum gain in nats on half of the folds before all of them are tried
_LET_THROUGH: Final = GuardSettings().shares


def tune_stage(attempt: Attempt, probed: ProbeOutput, trained: TrainOutput, alone: Judged) -> TuneOutput:
    """Tune hypernetwork and embedding on the new task, if requested or worthwhile.

    Args:
        attempt: the current attempt.
        probed, trained: outputs of those stages.
        alone: predictions of the embedding alone.

    Raises:
        SlotTakenError: see `require_turn_to_tune`.
    """
    worth = Worth(True, "It was requested.")
    if attempt.job.spec.tune_hypernetwork == "auto":
        worth = worth_tuning(_embedding_alone(attempt, probed, trained, alone))
    if not worth.tune:
        return _not_tuned(attempt, worth.reason, diverged=False)
    require_turn_to_tune(attempt.job, attempt.services)
    bench, tuner = attempt.bench, _Tuner(attempt, probed.words, trained)
    try:
        if attempt.job.spec.tune_hypernetwork == "auto" and (nothing := _nothing_to_gain(tuner)):
            return nothing
        tuned = tuner.called("tune")(trained.z, bench.labelled(bench.dataset.train))
    except (CancelledError, OutOfMemoryError):
        raise
    except JobFailedError as error:  # a loss or weight is not finite
        attempt.progress.note(f"{error.message} Continuing with the embedding alone.")
        return _not_tuned(attempt, error.message, diverged=True)
    return _proposed(tuner, tuned, worth.reason)


def _not_tuned(attempt: Attempt, reason: str, *, diverged: bool) -> NoStep:
    return NoStep(None, diverged, Tuning(**_facts(attempt, reason, tried=diverged)), {"tuned": False})


def _facts(attempt: Attempt, reason: str, *, tried: bool) -> dict[str, Any]:
    return {"asked": attempt.job.spec.tune_hypernetwork, "tried": tried, "kept": False, "reason": reason}


def _nothing_to_gain(tuner: _Tuner) -> NoStep | None:
    """Return an early end if a short trial lowers the new task's loss by less than `NEARLY`; else None.

    A tuning takes several times as long as all earlier stages and may cost earlier tasks that much. If there are folds,
    half of them are tried first, which ends the tuning if they gain hardly anything.

    Raises JobFailedError: it diverged.
    """
    trained = tuner.trained
    if trained.folds is None:
        return _looked(tuner, trained, NEARLY)
    half = trained.in_first_folds(_half(trained.folds))
    return _looked(tuner, half, _HARDLY) or _looked(tuner, trained, NEARLY)


def _half(folds: Folds) -> int:
    return max(1, len(folds.z) // 2)


def _looked(tuner: _Tuner, trained: TrainOutput, gain: float) -> NoStep | None:
    """Return an early end if a trial on these folds or held-out rows lowers the loss by less than `gain` nats."""
    bench, folds, looked = tuner.attempt.bench, None, None
    if trained.folds is not None:
        folds = _folds(tuner, trained.folds, SHARES, look=True)
    elif held_rows(bench):
        looked = tuner.called("first look", look=True)(trained.z, bench.labelled(bench.dataset.train))
    seen = _evidence(tuner, trained, folds, looked)
    if seen is None or seen.losses.least < seen.losses.alone - gain:
        return None
    settings = TuningSettings().for_rows(len(bench.dataset.train))
    steps = settings.for_look().steps
    reason = (
        f"A first look of {steps} of {settings.steps} steps lowers the loss on {seen.rows} {seen.kind} by less than "
        f"{gain} nats ({seen.losses.alone:.3f}; {seen.losses.least:.3f} at best), so the hypernetwork does not change."
    )
    tuning = Tuning(
        **_facts(tuner.attempt, reason, tried=True),
        learning_rate=settings.learning_rate, regulariser=settings.regulariser, looked=True, steps=steps,
        proposed=0.0, by_share=seen.losses.to_json(), evidence=seen.kind, rows=seen.rows,
    )  # fmt: skip
    return NoStep(None, diverged=False, tuning=tuning, numbers={"tuned": False, "looked": True})


def _proposed(tuner: _Tuner, tuned: Tuned, reason: str) -> TuneOutput:
    """Return the share of the step that the new task wants; `reason` is why it was tuned."""
    attempt, z = tuner.attempt, tuner.trained.z
    bench, settings, proposal = attempt.bench, TuningSettings(), _wanted(tuner, tuned)
    tuning = Tuning(
        **{
            **_facts(attempt, reason, tried=True),
            "learning_rate": settings.learning_rate,
            "regulariser": settings.regulariser,
            **tuned.facts(),
            **proposal.facts,
        }
    )
    numbers: dict[str, object] = {"loss": tuned.losses[-1], "drift": tuned.drift, "proposed": proposal.share}
    if not proposal.share:
        return NoStep(None, diverged=False, tuning=tuning, numbers=numbers)
    step = tuned.shortened(bench.engine.hypernetwork, z, proposal.share)
    draft = store_hypernetwork(attempt.services, bench.base, step.hypernetwork)
    assert draft.artifact is not None  # it was stored just now
    return ProposedStep(step.z, draft.artifact, proposal.folds, proposal.losses, tuning, numbers)


def folds_after(trained: TrainOutput, tuned: ProposedStep, share: float) -> Folds | None:
    """Return out-of-fold predictions after a share of the proposed step; None without folds."""
    if trained.folds is None or tuned.folds is None:
        return None
    return replace(trained.folds, probabilities=tuned.folds[str(share)])


@dataclass(frozen=True)
class _Wanted:
    """The share of the step that the new task wants.

    Args:
        share: share of the step; 0 if the embedding alone is as good.
        facts: facts of the choice for the job's document.
        losses: by share of the wanted step that the guard may leave (0 is the embedding alone), the new task's loss in
            nats, as far as measured.
        folds: by the same shares, out-of-fold probabilities; None without folds.
    """

    share: float
    facts: dict[str, Any]
    losses: dict[str, float]
    folds: dict[str, np.ndarray] | None = None


@dataclass(frozen=True)
class _Evidence:
    """Published losses of the new task by share of a step, on rows that trained neither part, with their number and
    kind.
    """

    losses: LossByShare
    kind: str
    rows: int


def _evidence(
    tuner: _Tuner, trained: TrainOutput, folds: Mapping[float, np.ndarray] | None, tuned: Tuned | None
) -> _Evidence | None:
    """Measure losses by tunings of the folds, or by one tuning on held-out rows; None if neither is possible."""
    bench = tuner.attempt.bench
    if trained.folds is not None and folds is not None:
        beside = beside_in_folds(bench, trained)
        after = {share: beside.loss(scores) for share, scores in folds.items()}
        losses = LossByShare(beside.loss(log_of(trained.folds.probabilities)), after)
        return _Evidence(losses, PREDICTED, len(beside.targets))
    if tuned is not None and (held := held_rows(bench)):
        return _Evidence(_held_losses(tuner, held, tuned), HELD, len(held))
    return None


def _wanted(tuner: _Tuner, tuned: Tuned) -> _Wanted:
    """Return the share that minimizes the loss on unseen rows; the whole step if there are none."""
    attempt, trained = tuner.attempt, tuner.trained
    folds = None if trained.folds is None else _folds(tuner, trained.folds, parts_of(_LET_THROUGH))
    seen = _evidence(tuner, trained, folds, tuned)
    if seen is None:
        return _Wanted(1.0, {"proposed": 1.0}, {})
    losses, evidence = seen.losses, seen.kind
    share = losses.wanted(at_all=attempt.job.spec.tune_hypernetwork == "always")
    facts: dict[str, Any] = {"proposed": share, "by_share": losses.to_json(), "evidence": evidence, "rows": seen.rows}
    if not share:
        facts["reason"] = (
            f"No part of the step lowers the loss on {seen.rows} {evidence} ({losses.alone:.3f} nats; after tuning "
            f"{losses.least:.3f} at best), so the hypernetwork does not change."
        )
        return _Wanted(share, facts, {})
    known = {"0": losses.alone}
    known |= {str(let): losses.after[share * let] for let in _LET_THROUGH if share * let in losses.after}
    if folds is None:
        return _Wanted(share, facts, known)
    probabilities = {str(let): np.exp(folds[share * let]).astype(np.float64) for let in _LET_THROUGH}
    return _Wanted(share, facts, known, probabilities)


def _held_losses(tuner: _Tuner, rows: Sequence[Example], tuned: Tuned) -> LossByShare:
    bench, z, checkpoint, after = tuner.attempt.bench, tuner.trained.z, tuner.attempt.checkpoint, {}
    beside = beside_held(bench, tuner.trained, checkpoint)
    for share in SHARES:
        part = tuned.shortened(bench.engine.hypernetwork, z, share)
        under = replace(bench, engine=bench.engine.under(part.hypernetwork))
        after[share] = beside.loss(under.scores(rows, tuner.words, part.z, checkpoint))
    return LossByShare(beside.loss(bench.scores(rows, tuner.words, z, checkpoint)), after)


def _folds(
    tuner: _Tuner, folds: Folds, shares: Sequence[float], *, look: bool = False
) -> dict[float, np.ndarray] | None:
    """Return scores of training rows by share, from tunings that have not seen them; None if one diverged."""
    attempt, bench = tuner.attempt, tuner.attempt.bench
    tuned_on = tuner.called("first look at fold" if look else "tune fold", of=len(folds.z), look=look)
    try:
        return tuned_out_of_fold(
            bench.engine, TrainingSet(bench.labelled(bench.dataset.train), bench.engine.trie(tuner.words)),
            folds.z, folds.fold, shares, tuned_on, bench.execution(attempt.checkpoint),
        )  # fmt: skip
    except (CancelledError, OutOfMemoryError):
        raise
    except JobFailedError as error:
        if not look:
            attempt.progress.note(f"{error.message} There will be no validation estimate.")
        return None


class _Tuner:
    """Tunes from an embedding on all or some training rows, while earlier embeddings keep their answers.

    Args:
        attempt: the current attempt.
        words: words that represent the labels.
        trained: the embedding alone, with its folds.
    """

    def __init__(self, attempt: Attempt, words: Sequence[str], trained: TrainOutput) -> None:
        self.attempt, self.words, self.trained = attempt, words, trained
        bench, services = attempt.bench, attempt.services
        versions = protected(services, bench.base, attempt.base, attempt.job.spec.task)
        earlier = [
            task
            for task in (protected_task(services, bench.base, version) for version in versions)
            if task.trouble is None  # the guard will refuse it and say so
        ]
        self._engine, self._trie = bench.engine.rounded(), bench.engine.trie(words)
        self._protection = Protection(earlier, canary_ids(self._engine.encoder, "tuning"))
        self._course = attempt.course(self._steps())

    def called(self, what: str, *, of: int = 0, look: bool = False) -> Callable[[np.ndarray, LabelledRows], Tuned]:
        """Return a function that tunes from an embedding (t,) on rows; the log calls it `what`, numbered if `of` is
        given.

        Raises, when it is called:
            JobFailedError: it diverged.
            OutOfMemoryError: the GPU cannot hold even a single row.
        """
        numbers, bench = count(1), self.attempt.bench

        def tuned_on(z: np.ndarray, rows: LabelledRows) -> Tuned:
            settings = self._settings(len(rows.ids), look=look)
            name = f"{what} {next(numbers)} of {of}" if of else what
            return tune(
                self._engine, TrainingSet(rows, self._trie), z, self._protection, settings, self.attempt.job.spec.seed,
                bench.execution(on_step=self._course.part(name, settings.steps)),
            )  # fmt: skip

        return tuned_on

    def _settings(self, rows: int, *, look: bool = False) -> TuningSettings:
        settings = TuningSettings().for_part(rows, of=len(self.attempt.bench.dataset.train))
        return settings.for_look() if look else settings

    def _steps(self) -> int:
        """Number of steps of the tuning, of those of its folds, and of the trial."""
        rows, folds = len(self.attempt.bench.dataset.train), self.trained.folds
        parts = [rows - int((folds.fold == number).sum()) for number in range(len(folds.z))] if folds else []
        looks = [*parts[: _half(folds)], *parts] if folds else [rows]
        if self.attempt.job.spec.tune_hypernetwork != "auto":
            looks = []
        whole = sum(self._settings(part).steps for part in (rows, *parts))
        return whole + sum(self._settings(part, look=True).steps for part in looks)


def _embedding_alone(attempt: Attempt, probed: ProbeOutput, trained: TrainOutput, alone: Judged) -> EmbeddingAlone:
    """Return the facts about the embedding alone, from rows that chose nothing else; test rows do not decide."""
    estimate, _, _ = alone.validation()
    baselines = alone.baselines.get("validation", {})

    def accuracy(metrics: Metrics | None) -> float | None:
        return metrics["accuracy"].value if metrics and "accuracy" in metrics else None

    return EmbeddingAlone(
        accuracy=accuracy(estimate),
        rows=estimate["accuracy"].n if estimate and "accuracy" in estimate else 0,
        majority=accuracy(baselines.get("majority")),
        tfidf=accuracy(baselines.get("tfidf_logistic_regression")),
        training_loss=lambda: attempt.bench.loss(
            fitted_rows(attempt.bench), probed.words, trained.z, attempt.checkpoint
        ),
        labels=len(probed.words),
        **({"who": _BOTH} if alone.together.readout is not None else {}),
    )
