"""Few-shot training of task-specific weights on a frozen backbone: adapters, prompts, biases, or low-rank updates.

A plain loop with AdamW and a learning rate that falls linearly to 0. No choices are made on the way, so out-of-fold
predictions are a fair estimate for the weights of all rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from onboard.errors import JobFailedError
from onboard.model.batch import LabelledRows, TrainingSet
from onboard.model.batched import log_probabilities
from onboard.model.cores import side_by_side
from onboard.model.engine import Engine
from onboard.model.execution import UNWATCHED, Execution
from onboard.model.memory import RowsAtOnce
from onboard.model.scoring import LabelTrie
from onboard.model.side_by_side import AT_ONCE, Padding
from onboard.model.task_module import TaskModule
from onboard.train.crossvalidation import Fold, OutOfFold, fold_of, in_a_fold
from onboard.train.fewshot import batches
from onboard.train.settings import FEW_STEPS_RATES, OwnWeightsSettings

NewTask = Callable[[], TaskModule]


@dataclass(frozen=True)
class TrainedTask:
    """The result of a training.

    Args:
        module: the task's parameters, as published.
        losses: training loss at each step, nats.
        padding_share: share of padding among all computed token positions.
        folds: out-of-fold predictions; None without a cross-validation.
    """

    module: TaskModule
    losses: tuple[float, ...]
    padding_share: float
    folds: OutOfFold | None = None


def learn_task(
    engine: Engine,
    new: NewTask,
    training_set: TrainingSet,
    settings: OwnWeightsSettings,
    seed: int,
    parted: Sequence[Fold],
    execution: Execution = UNWATCHED,
) -> TrainedTask:
    """Train on all rows, then, if there are folds, once per fold to predict its rows.

    On a CPU, equal seeds give equal bytes.

    Args:
        new: creates the initial parameters.
        training_set: labeled rows and label words.
        settings: steps and batch.
        seed: seed of the initial parameters and the batch order.
        parted: the folds; none without a cross-validation.
        execution: called at every step.

    Raises:
        JobFailedError: the loss is not finite.
        OutOfMemoryError: the GPU cannot hold even a single row.
    """
    rows, trie = training_set.rows, training_set.trie
    fast = engine.rounded()
    whole = train_task(fast, seeded(new, seed, engine.device), training_set, settings, seed, execution)
    if not parted:
        return whole
    scores = np.zeros(rows.targets.shape, dtype=np.float32)
    for part in parted:
        of_fold = TrainingSet(rows.at(part.kept), trie)
        shorter = settings.for_part(len(part.kept), len(rows.ids))
        module = train_task(fast, seeded(new, seed, engine.device), of_fold, shorter, seed, execution).module
        scores[part.held] = answered(engine, module, rows.at(part.held), trie, execution)
    return replace(whole, folds=out_of_fold(scores, parted))


def out_of_fold(scores: np.ndarray, parted: Sequence[Fold]) -> OutOfFold:
    """Convert log-probabilities of rows (n, K) to out-of-fold predictions of the rows in folds."""
    fold = fold_of(len(scores), parted)
    trained_on = {1.0: float(np.mean([len(part.kept) for part in parted]))}
    nothing = np.zeros((len(parted), 0), dtype=np.float32)  # no embedding is trained
    return OutOfFold(fold, scores[in_a_fold(fold)], {}, trained_on, nothing, parted)


def seeded(new: NewTask, seed: int, device: torch.device) -> TaskModule:
    """Create parameters with a seed, without affecting other random numbers."""
    with torch.random.fork_rng([device] if device.type == "cuda" else []):
        torch.manual_seed(seed)
        return new()


@torch.no_grad()
def answered(
    engine: Engine, module: TaskModule, rows: LabelledRows, trie: LabelTrie, execution: Execution
) -> np.ndarray:
    """Return log-probabilities (n, K) of rows."""
    return log_probabilities(engine, rows.ids, module.weights(), trie, execution.before_batch, execution.scored_at_once)


def rate_of(module: TaskModule) -> float:
    """Return the initial learning rate."""
    return FEW_STEPS_RATES.get(module.METHOD, module.LEARNING_RATE)


def train_task(
    engine: Engine,
    module: TaskModule,
    training_set: TrainingSet,
    settings: OwnWeightsSettings,
    seed: int,
    execution: Execution = UNWATCHED,
) -> TrainedTask:
    """Train a module in place. Arguments and errors as for `learn_task`."""
    rows = training_set.rows
    order = batches([len(row) for row in rows.ids], settings.steps, settings.batch, seed)
    optimiser = torch.optim.AdamW(module.parameters(), lr=rate_of(module), weight_decay=0.0)
    rate = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda step: 1.0 - step / len(order))
    losing, losses = _Losing(engine, module, training_set, execution.trained_at_once), list[float]()
    for step, chosen in enumerate(order, 1):
        gradients, loss = losing.gradients(chosen)
        if not np.isfinite(loss):
            raise JobFailedError("training-diverged", loss=loss, step=step)
        for parameter, gradient in zip(module.parameters(), gradients, strict=True):
            parameter.grad = gradient
        optimiser.step()
        rate.step()
        losses.append(loss)
        execution.on_step(step, loss)
    return TrainedTask(module, tuple(losses), losing.padding.share)


class _Losing:
    """Mean losses of batches, and their gradients for the module's parameters."""

    def __init__(
        self, engine: Engine, module: TaskModule, training_set: TrainingSet, at_once: RowsAtOnce | None
    ) -> None:
        self._engine, self._module, self._trie = engine, module, training_set.trie
        self._ids = training_set.rows.ids
        targets = np.ascontiguousarray(training_set.rows.targets, dtype=np.float32)
        self._targets = torch.from_numpy(targets).to(engine.device)
        self._at_once = at_once or RowsAtOnce(AT_ONCE)
        self.padding = Padding()

    def gradients(self, chosen: np.ndarray) -> tuple[list[Tensor], float]:
        """Return the gradient of these rows' mean loss per parameter, and the loss. Raises OutOfMemoryError."""
        rows = chosen[np.argsort([len(self._ids[row]) for row in chosen], kind="stable")]
        lengths, device = [len(self._ids[row]) for row in rows], self._engine.device
        parameters = list(self._module.parameters())

        def of_part(part: slice) -> tuple[list[Tensor], float]:
            scores = self._engine.score([self._ids[row] for row in rows[part]], self._module.weights(), [self._trie])
            loss = -(self._targets[rows[part]] * scores).sum() / len(rows)
            gradients = torch.autograd.grad(loss, parameters, materialize_grads=True, allow_unused=True)
            return list(gradients), float(loss.detach())

        def of_all() -> tuple[list[Tensor], float, list[slice]]:
            parts = self._at_once.parts_of_like_length(lengths, device)
            total, loss = [torch.zeros_like(parameter) for parameter in parameters], 0.0
            for gradients, of_loss in side_by_side(device, of_part, parts):
                torch._foreach_add_(total, gradients)
                loss += of_loss
            return total, loss, parts

        gradients, loss, parts = self._at_once.fitting(len(rows), of_all)
        for part in parts:
            self.padding.count(lengths[part])
        return gradients, loss
