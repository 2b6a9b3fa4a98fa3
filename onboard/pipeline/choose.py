"""The choose stage of `--method auto`: compare the default with a readout alone and with task-specific weights.

`onboard.train.method_choice` contains the rule. Without rows to compare methods on, none is tried.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from onboard.contract.report import MethodChoice, TriedMethod
from onboard.domain.dataset import Example
from onboard.domain.job import Stage
from onboard.domain.methods import SMALL
from onboard.errors import CancelledError, InputError, JobFailedError, OutOfMemoryError
from onboard.pipeline.attempt import Attempt
from onboard.pipeline.calibration import temperature_of
from onboard.pipeline.evaluate import Judged
from onboard.pipeline.evidence import HELD, PREDICTED, held_rows
from onboard.pipeline.label_next import labelling
from onboard.pipeline.material import Workbench
from onboard.pipeline.outcome import JobOutcome
from onboard.pipeline.outputs import ChooseOutput, ProbeOutput, TrainOutput
from onboard.pipeline.own_start import own_start
from onboard.pipeline.own_weights import readout_alone, train_own
from onboard.statistics.readout import Readout
from onboard.statistics.student import paired
from onboard.statistics.temperature import tempered
from onboard.storage.readout import readout_tensors
from onboard.storage.weights import unpack_weights
from onboard.train.crossvalidation import log_of, rows_in_folds
from onboard.train.method_choice import Choice, Tried, cheapest, least, nothing_to_gain

_BEFORE = (Stage.PROBE, Stage.TRAIN, Stage.TUNE, Stage.GUARD)  # stages of the default method


def choose_stage(attempt: Attempt, probed: ProbeOutput, judged: Judged, outcome: JobOutcome) -> ChooseOutput:
    """Try further methods while they may improve the result; choose the cheapest that is good enough.

    Args:
        attempt: the current attempt.
        probed: output of the probe stage.
        judged: predictions of the default method.
        outcome: outcome of the default method.
    """
    witnesses = witnesses_of(outcome.bench, outcome.trained)
    if witnesses is None:
        return _alone(outcome)
    trial = _Trial(attempt, probed, witnesses)
    trial.add(judged, outcome.trained, sum(attempt.seconds.get(stage.value, 0.0) for stage in _BEFORE))
    alone = readout_alone(outcome.trained)
    if alone is not None:
        trial.add(trial.judged(alone), alone, None)
    stopped = trial.go_on()
    choice = cheapest(trial.measured)
    trained = trial.trained[choice.method]
    if not trained.has_embedding:
        trained = replace(trained, label_next=labelling(attempt, attempt.bench, probed.words, trained))
    methods = trial.document(choice, stopped)
    numbers: dict[str, object] = {"chosen": choice.method, "tried": len(methods.tried)}
    return ChooseOutput(None if trained.has_embedding else trained, methods, numbers)


@dataclass(frozen=True)
class Witnesses:
    """Rows that compare methods; none trained the model that predicts it.

    Args:
        rows: number of rows, m.
        folded: True for training rows in folds, False for held-out rows.
    """

    rows: Sequence[Example]
    folded: bool


def witnesses_of(bench: Workbench, trained: TrainOutput) -> Witnesses | None:
    """Return the rows that compare methods; None if there are none."""
    folds = trained.folds
    rows = held_rows(bench) if folds is None else rows_in_folds(bench.dataset, folds.fold)
    return Witnesses(rows, folds is not None) if rows else None


def measure(judged: Judged, trained: TrainOutput, witnesses: Witnesses) -> Tried:
    """Measure a method on the witnesses: calibrated and with its readout, as it would be published.

    Args:
        judged: predictions of the method.
        trained: its training output.
        witnesses: the same rows for all methods.
    """
    bench, rows = judged.bench, witnesses.rows
    folds = judged.together.folds if witnesses.folded else None  # all methods use the same folds
    probabilities = judged.predict(rows) if folds is None else folds.probabilities
    temperature, _, _ = temperature_of(bench, folds, lambda _: probabilities)  # fitted on these rows
    losses = -(bench.weighted(rows) * log_of(tempered(probabilities, temperature))).sum(1)
    right = probabilities.argmax(1) == bench.targets(rows).argmax(1)
    accuracy = None if bench.buckets is not None else float(right.mean())
    return Tried(trained.method, losses, accuracy, _stored_bytes(trained, judged.together.readout))


def _stored_bytes(trained: TrainOutput, readout: Readout | None) -> int:
    """Return the size of a version's tensors without file headers; `readout` is the readout that answers, if any."""
    tensors = [*([] if readout is None else readout_tensors(readout).values()), trained.z]
    tensors += [] if trained.weights is None else unpack_weights(trained.weights).values()
    return sum(tensor.nbytes for tensor in tensors)


def _alone(outcome: JobOutcome) -> ChooseOutput:
    method = outcome.trained.method
    reason = "No rows are left to compare it with other methods."
    methods = MethodChoice(chosen=method, reason=reason, stopped=reason, evidence=None, rows=0, tried=())
    return ChooseOutput(None, methods, {"chosen": method, "tried": 0})


@dataclass
class _Trial:
    """Methods on the same rows.

    Args:
        attempt: the current attempt.
        probed: supplies the label words and the rows that must not judge.
        witnesses: the rows that compare the methods.
        measured, trained, facts: results of every method tried so far.
    """

    attempt: Attempt
    probed: ProbeOutput
    witnesses: Witnesses
    measured: list[Tried] = field(default_factory=list)
    trained: dict[str, TrainOutput] = field(default_factory=dict)
    facts: dict[str, TriedMethod] = field(default_factory=dict)

    def judged(self, trained: TrainOutput) -> Judged:
        """Return the predictions of a method without an embedding."""
        attempt = self.attempt
        return Judged(attempt.bench, attempt.job.spec, self.probed, trained, attempt.progress)

    def add(self, judged: Judged, trained: TrainOutput, seconds: float | None) -> None:
        tried, method = measure(judged, trained, self.witnesses), trained.method
        self.measured.append(tried)
        self.trained[method] = trained
        self.facts[method] = TriedMethod(
            method=method, bytes=tried.stored_bytes, trained=trained.training.trained,
            seconds=None if seconds is None else round(seconds, 3), reason=None,
        )  # fmt: skip
        self.attempt.progress.note(f"{method}: {tried.loss:.3f} nats on {len(tried.losses)} rows", loss=tried.loss)

    def go_on(self) -> str:
        """Try task-specific weights, smallest first, until nothing can be gained; return why no further method was
        tried.
        """
        for method in SMALL:
            stopped = nothing_to_gain(self.measured)
            if stopped:
                return stopped
            self.attempt.checkpoint()
            started = time.monotonic()
            try:
                trained = train_own(self.attempt, _started(self.attempt, self.probed, method), method, {})
            except (CancelledError, OutOfMemoryError):
                raise
            except (InputError, JobFailedError) as error:  # the method does not fit the base, or its loss is not finite
                self.facts[method] = TriedMethod(method=method, loss=None, reason=error.message)
                continue
            self.add(self.judged(trained), trained, time.monotonic() - started)
        return nothing_to_gain(self.measured) or "There are no other methods to try."

    def document(self, choice: Choice, stopped: str) -> MethodChoice:
        """Return the job's document of the choice."""
        best, by_name = least(self.measured), {tried.method: tried for tried in self.measured}
        tried = [
            facts.model_copy(update=_compared(by_name[method], best)) if method in by_name else facts
            for method, facts in self.facts.items()
        ]
        return MethodChoice(
            chosen=choice.method, reason=choice.reason, stopped=stopped,
            evidence=PREDICTED if self.witnesses.folded else HELD, rows=len(self.witnesses.rows),
            tried=tuple(sorted(tried, key=lambda facts: facts.bytes or float("inf"))),
        )  # fmt: skip


def _started(attempt: Attempt, probed: ProbeOutput, method: str) -> ProbeOutput:
    """Return the start of a method without an embedding, with the rows that judge the default."""
    return replace(own_start(attempt, method), known=probed.known)


def _compared(tried: Tried, best: Tried) -> dict[str, float | None]:
    low, high = tried.interval or (None, None)
    behind, error = (0.0, 0.0) if tried is best else paired(tried.losses, best.losses)
    return {"loss": tried.loss, "low": low, "high": high, "behind": behind, "error": error}
