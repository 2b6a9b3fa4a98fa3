"""The loop of every training stage of a base: warm-up, clipping, checkpoints, validation, progress, signals."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import nn

from onboard.errors import JobFailedError
from onboard.making.multitask.checkpoint import BestWeights, StageCheckpoint
from onboard.making.multitask.processes import Processes
from onboard.making.multitask.recipe import Schedule
from onboard.making.multitask.signals import Signals, StoppedError

Say = Callable[[str], None]
_REPORT_SECONDS = 15.0


@dataclass(frozen=True)
class StepLoss:
    """The loss of one step.

    Args:
        value: mean over the tasks of the mean over their rows; with several processes, this one's share of it.
        task: task of the batch, or several joined by commas; empty for stages without tasks.
        rows: of the whole batch.
        tokens: source tokens of the whole batch, without padding.
    """

    value: torch.Tensor
    task: str = ""
    rows: int = 0
    tokens: int = 0


LossOf = Callable[[int], StepLoss]  # by step, counted from 0; depends on the step alone


@dataclass(frozen=True)
class Scores:
    """A validation: the metric of each source by name, and the metric's name."""

    values: Mapping[str, float]
    metrics: Mapping[str, str]

    @property
    def mean(self) -> float:
        """Mean over the sources, unweighted by rows."""
        return sum(self.values.values()) / len(self.values)

    def __str__(self) -> str:
        return ", ".join(f"{name} {self.metrics[name]} {value:.3f}" for name, value in self.values.items())


@dataclass(frozen=True)
class StageValidation:
    """Scores the current weights at regular steps, and after the last one.

    Args:
        every: steps between validations.
        score: scores the weights; calls its argument before every batch, which may raise to abort.
    """

    every: int
    score: Callable[[Callable[[], None]], Scores]


@dataclass(frozen=True)
class TrainingStage:
    """A training stage.

    Args:
        name: also the checkpoint's file name.
        schedule: steps, learning rate, warm-up.
        modules: the contents of the checkpoint.
        groups: parameters with multiples of the learning rate.
        loss_of: the loss of a step (counted from 0); must depend on the step alone.
        settings: JSON-compatible; a checkpoint with other settings is refused.
        validation: if given, the stage ends with the weights of the best validation.
    """

    name: str
    schedule: Schedule
    modules: Mapping[str, nn.Module]
    groups: Sequence[tuple[Sequence[nn.Parameter], float]]
    loss_of: LossOf
    settings: Mapping[str, Any]
    validation: StageValidation | None = None

    @property
    def parameters(self) -> list[nn.Parameter]:
        """All trained parameters."""
        return [parameter for parameters, _ in self.groups for parameter in parameters]


@dataclass(frozen=True)
class Running:
    """The environment of a stage.

    Args:
        work: folder of the checkpoints.
        say: receives progress, one line at a time.
        processes: this process and the others of the run.
        signals: SIGTERM and SIGINT.
    """

    work: Path
    say: Say
    processes: Processes = field(default_factory=lambda: Processes(0, 1, torch.device("cpu")))
    signals: Signals = field(default_factory=Signals)


def run_stage(stage: TrainingStage, running: Running) -> None:
    """Train to the schedule's last step, from the stage's checkpoint if there is one.

    With a validation, the modules end with the best weights. The checkpoint is kept as the stage's result, so a
    finished stage is not run again. Task embeddings outside the batch have no gradient, and AdamW does not change
    parameters without one, so momentum does not move them.

    Raises:
        JobFailedError: the loss is not finite.
        ConflictError: the checkpoint has other settings.
        StorageError: a checkpoint cannot be written.
        StoppedError: SIGTERM or SIGINT; the state is saved.
    """
    _Loop(stage, running).run()


class _Loop:
    def __init__(self, stage: TrainingStage, running: Running) -> None:
        self.stage, self.running = stage, running
        self.first_process = running.processes.first
        groups = [{"params": list(parameters)} for parameters, _ in stage.groups]
        self.optimiser = torch.optim.AdamW(groups, lr=0.0, weight_decay=stage.schedule.weight_decay, fused=True)
        path = running.work / f"{stage.name}.safetensors"
        self.checkpoint = StageCheckpoint(path, stage.modules, self.optimiser, stage.settings)
        self.best = BestWeights(path.with_name(f"{stage.name}-best.safetensors"), stage.modules)

    def run(self) -> None:
        first, last = self._start(), self.stage.schedule.steps
        progress = _Progress(self.stage.name, first, last, self.running.say if self.first_process else _silent)
        if first < last:
            with self.running.signals.deferred():
                for step in range(first, last):
                    self._validate_if_due(step, progress)
                    self._train(step, progress)
                    if self.first_process:
                        self.checkpoint.save_if_due(step + 1)
                if self.first_process:
                    self.checkpoint.save(last)
        if self.stage.validation is not None and self.first_process:
            self._validate(self.stage.validation, last, progress, lambda: None)
            self.best.load()
            self.running.say(f"{self.stage.name}: best validation {self.best.mean:.4f} at step {self.best.step}")

    def _start(self) -> int:
        first = self.checkpoint.restore()
        if first:
            self.best.restore()
            if self.first_process:
                self.running.say(f"{self.stage.name}: resumes at step {first} of {self.stage.schedule.steps}")
        elif self.first_process:
            self.best.forget()
        self.running.processes.wait()  # no process deletes or writes a file that another still reads
        return first

    def _train(self, step: int, progress: _Progress) -> None:
        schedule, parameters = self.stage.schedule, self.stage.parameters
        for group, (_, multiple) in zip(self.optimiser.param_groups, self.stage.groups, strict=True):
            group["lr"] = schedule.learning_rate * schedule.factor(step) * multiple
        if self.running.processes.count == 1 and self.running.signals.caught is not None:
            self._stop(step)
        loss = self.stage.loss_of(step)
        self.optimiser.zero_grad(set_to_none=True)
        loss.value.backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
        told_to_stop = self.running.signals.caught is not None
        value, stop = self.running.processes.exchange(parameters, loss.value, told_to_stop)
        if not math.isfinite(value):
            whose = f" (task {loss.task})" if loss.task else ""
            raise JobFailedError(
                "base-training-diverged", step=step, task=loss.task, stage=self.stage.name, value=value, whose=whose
            )
        if stop:
            self._stop(step)
        torch.nn.utils.clip_grad_norm_(parameters, schedule.clip)
        self.optimiser.step()
        progress.add(step, value, loss)

    def _stop(self, step: int) -> None:
        if self.first_process:
            self.checkpoint.save(step)
        number = self.running.signals.caught
        raise StoppedError(number if number is not None else 15, f"{self.stage.name} was saved at step {step}")

    def _validate_if_due(self, step: int, progress: _Progress) -> None:
        validation = self.stage.validation
        if validation is None or not self.first_process or not step or step % validation.every:
            return
        try:
            self._validate(validation, step, progress, self._break_off_when_told)
        except _BrokenOffError:
            return  # the next step stops all processes; the validation is repeated on resuming

    def _break_off_when_told(self) -> None:
        if self.running.signals.caught is not None:
            raise _BrokenOffError

    def _validate(
        self, validation: StageValidation, step: int, progress: _Progress, before_batch: Callable[[], None]
    ) -> None:
        scores = validation.score(before_batch)
        better = self.best.offer(step, scores.mean)
        standing = "the best so far" if better else f"best {self.best.mean:.4f} at step {self.best.step}"
        progress.say(f"{self.stage.name} {step}: validation {scores.mean:.4f} ({standing}): {scores}")


class _BrokenOffError(Exception):
    """A signal aborted a validation."""


class _Progress:
    """Reports loss, rows and tokens per second, and time left at intervals."""

    def __init__(self, name: str, first: int, last: int, say: Say) -> None:
        self.say = say
        self._name, self._first, self._last = name, first, last
        self._started = self._said = time.monotonic()
        self._losses: list[float] = []
        self._rows = self._tokens = 0

    def add(self, step: int, loss: float, drawn: StepLoss) -> None:
        """Count a step, and report if it is due."""
        self._losses.append(loss)
        self._rows += drawn.rows
        self._tokens += drawn.tokens
        now = time.monotonic()
        if now - self._said < _REPORT_SECONDS and step + 1 < self._last:
            return
        seconds = max(now - self._said, 1e-9)
        remaining_seconds = (now - self._started) / (step + 1 - self._first) * (self._last - step - 1)
        speed = f"{self._rows / seconds:,.0f} rows/s  {self._tokens / seconds:,.0f} tokens/s  " if self._rows else ""
        loss = sum(self._losses) / len(self._losses)
        self.say(f"{self._name} {step + 1}/{self._last}  loss {loss:.4f}  {speed}{duration(remaining_seconds)} left")
        self._said, self._losses, self._rows, self._tokens = now, [], 0, 0


def duration(seconds: float) -> str:
    """Return a readable duration: 45 s, 12 min, 3 h 12 min."""
    minutes = round(seconds / 60)
    if seconds < 60:
        return f"{seconds:.0f} s"
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def _silent(line: str) -> None:
    """Ignore messages of all processes except the first."""
