"""Tune hypernetwork and embedding on the new task together, while earlier tasks keep the hypernetwork in place.

The loss is that of the new task plus β times a regularizer over earlier embeddings (see the module `holding`).
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

import numpy as np
import torch
from torch import Tensor, nn

from onboard.errors import JobFailedError
from onboard.model.batch import TrainingSet
from onboard.model.cores import side_by_side
from onboard.model.engine import Engine
from onboard.model.execution import UNWATCHED, Execution
from onboard.model.hypernetwork import Hypernetwork
from onboard.model.interpolate import between, embedding_between
from onboard.model.memory import RowsAtOnce
from onboard.model.protected import Protection
from onboard.model.side_by_side import AT_ONCE
from onboard.model.steps import Steps
from onboard.train.fewshot import batches
from onboard.train.holding import DrawnPairs, Holding, draws
from onboard.train.settings import TuningSettings

CLIP: Final = 1.0  # norm of the gradient, as in the paper


@dataclass(frozen=True)
class Tuned:
    """The result of a tuning.

    Args:
        hypernetwork: frozen, on the engine's device.
        z: (t,) float32.
        losses: loss of the new task at each step, nats.
        penalties: the regularizer at each step, without β; 0 without earlier embeddings.
        drift: how far the weights moved that are generated for earlier embeddings, the mean over all of them.
    """

    hypernetwork: Hypernetwork
    z: np.ndarray
    losses: tuple[float, ...]
    penalties: tuple[float, ...]
    drift: float

    def facts(self) -> dict[str, Any]:
        """Return the facts of the tuning, without the weights, for its document."""
        return {
            "steps": len(self.losses), "loss": list(self.losses), "penalty": list(self.penalties), "drift": self.drift,
        }  # fmt: skip

    def shortened(self, before: Hypernetwork, z: np.ndarray, share: float) -> Tuned:
        """Move back to this share of the way from the earlier hypernetwork and embedding (t,); the losses are
        unchanged.
        """
        moved = embedding_between(z, self.z, share)
        return replace(self, hypernetwork=between(before, self.hypernetwork, share), z=moved)


def tune(
    engine: Engine,
    training_set: TrainingSet,
    z: np.ndarray,
    protection: Protection,
    settings: TuningSettings,
    seed: int,
    execution: Execution = UNWATCHED,
) -> Tuned:
    """Tune a copy of the engine's hypernetwork and the embedding. On a CPU, equal arguments give equal bytes.

    Uses Adam without weight decay. The backbone with its norms stays frozen; the engine's hypernetwork is not changed.

    Args:
        engine: backbone, and the hypernetwork to start from.
        z: (t,) its trained embedding.
        protection: embeddings of other tasks; without any, there is no regularizer. "divergence" also needs texts,
            which the guard must not use, as they are trained on.
        settings: steps, rates and the regularizer.
        seed: seed of the batch order and of the draws.
        execution: called at every step with the new task's loss.

    Raises:
        JobFailedError: the loss or a weight is not finite.
        OutOfMemoryError: the GPU cannot hold even a single row.
        ValueError: "divergence" was requested without canaries.
    """
    tuning = _Tuning(engine, training_set, z, protection, settings, execution.trained_at_once or RowsAtOnce(AT_ONCE))
    course = []
    for step, (chosen, drawn) in enumerate(_rounds(training_set, protection, settings, seed), 1):
        loss, penalty = tuning.gradient(chosen, drawn)
        if not math.isfinite(loss + penalty):
            raise JobFailedError("tuning-diverged", loss=loss + penalty, step=step)
        tuning.step()
        course.append((loss, penalty))
        execution.on_step(step, loss)
    hypernetwork, moved = tuning.frozen()
    losses, penalties = zip(*course, strict=True)
    return Tuned(hypernetwork, moved, losses, penalties, tuning.holding.drift(hypernetwork))


def _rounds(
    training_set: TrainingSet, protection: Protection, settings: TuningSettings, seed: int
) -> Iterator[tuple[np.ndarray, DrawnPairs]]:
    """Yield the row indices and the regularizer's sample of every step."""
    order = batches([len(ids) for ids in training_set.rows.ids], settings.steps, settings.batch, seed)
    held = draws(len(protection.tasks), len(protection.canaries), settings.sampled, settings.steps, seed)
    return zip(order, held, strict=True)


class _Tuning:
    """A copy of the engine's hypernetwork and an embedding that learn together; arguments as for `tune`."""

    def __init__(
        self,
        engine: Engine,
        training_set: TrainingSet,
        z: np.ndarray,
        protection: Protection,
        settings: TuningSettings,
        at_once: RowsAtOnce,
    ) -> None:
        if protection.tasks and settings.beta and settings.regulariser == "divergence" and not protection.canaries:
            raise ValueError("the divergence needs canary texts")
        self._engine, self._ids, self._trie = engine, training_set.rows.ids, training_set.trie
        self._beta, self._at_once = settings.beta, at_once
        self.holding = Holding(engine, protection, settings.regulariser)
        targets = training_set.rows.targets
        counted = targets.sum(1, keepdims=True)  # (n, 1)
        smoothed = (1.0 - settings.smoothing) * targets + settings.smoothing * counted / targets.shape[1]
        self._targets = torch.from_numpy(np.ascontiguousarray(smoothed, dtype=np.float32)).to(engine.device)
        self._hypernetwork = copy.deepcopy(engine.hypernetwork).requires_grad_(True)
        weights = list(self._hypernetwork.parameters())
        start = torch.from_numpy(np.array(z, dtype=np.float32))[None]  # (1, t)
        self._embedding = nn.Parameter(start.to(weights[0].device))
        self._parameters = [*weights, self._embedding]
        self._optimiser = torch.optim.Adam(
            [
                {"params": weights, "lr": settings.learning_rate},
                {"params": [self._embedding], "lr": settings.z_learning_rate},
            ]
        )
        self._falling = torch.optim.lr_scheduler.LambdaLR(self._optimiser, lambda step: 1.0 - step / settings.steps)
        self._bound = Steps.norm_per_root * len(z) ** 0.5

    def gradient(self, chosen: np.ndarray, drawn: DrawnPairs) -> tuple[float, float]:
        """Compute the gradient into the parameters; return the new task's loss and the regularizer."""
        widest = max(len(chosen), len(drawn.embeddings))
        return self._at_once.fitting(widest, partial(self._gradient, chosen, drawn))

    def _gradient(self, chosen: np.ndarray, drawn: DrawnPairs) -> tuple[float, float]:
        self._optimiser.zero_grad()
        chosen = chosen[np.argsort([len(self._ids[row]) for row in chosen], kind="stable")]

        def of_part(part: slice) -> tuple[float, tuple[Tensor, ...]]:
            ids, labels = [self._ids[row] for row in chosen[part]], self._targets[chosen[part]]
            scores = self._engine.log_probabilities(ids, self._embedding, [self._trie], hypernetwork=self._hypernetwork)
            share = -(labels * scores).sum() / len(chosen)
            return float(share.detach()), torch.autograd.grad(share, self._parameters)

        parts = self._at_once.parts_of_like_length([len(self._ids[row]) for row in chosen], self._engine.device)
        losses, moved = zip(*side_by_side(self._engine.device, of_part, parts), strict=True)
        for parameter, gradients in zip(self._parameters, zip(*moved, strict=True), strict=True):
            parameter.grad = sum(gradients[1:], gradients[0])
        if not self._beta:
            return sum(losses), 0.0
        return sum(losses), self.holding.backward(self._hypernetwork, drawn, self._beta, self._at_once)

    def step(self) -> None:
        """Update the parameters, with the embedding within its bound."""
        nn.utils.clip_grad_norm_(self._parameters, CLIP)
        self._optimiser.step()
        self._falling.step()
        with torch.no_grad():
            self._embedding.mul_(torch.clamp(self._bound / self._embedding.norm(), max=1.0))

    def frozen(self) -> tuple[Hypernetwork, np.ndarray]:
        """Return hypernetwork and z (t,). Raises JobFailedError: a weight is not finite."""
        if not all(bool(torch.isfinite(tensor).all()) for tensor in self._parameters):
            raise JobFailedError("tuned-weight-not-finite")
        self._hypernetwork.requires_grad_(False)
        for weight in self._hypernetwork.parameters():
            weight.grad = None
        z: np.ndarray = self._embedding.detach()[0].cpu().numpy()
        return self._hypernetwork, z
