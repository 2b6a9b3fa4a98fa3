"""Tuning: hypernetwork and embedding learn the new task together, while earlier tasks hold the hypernetwork in place.

The loss is that of the new task plus β times a regulariser over earlier embeddings (`holding`).
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

import numpy as np
import torch
from torch import Tensor, nn

from onboard.errors import JobFailedError
from onboard.model.batch import LabelledRows
from onboard.model.cores import side_by_side
from onboard.model.engine import Engine
from onboard.model.hypernetwork import Hypernetwork
from onboard.model.interpolate import between, embedding_between
from onboard.model.memory import RowsAtOnce
from onboard.model.protected import ProtectedTask
from onboard.model.scoring import LabelTrie
from onboard.model.side_by_side import AT_ONCE, Steps
from onboard.train.fewshot import batches
from onboard.train.holding import Drawn, Holding, Regulariser, draws

__all__ = ["Tuned", "TuningSettings", "tune"]

CLIP: Final = 1.0  # norm of the gradient, as the authors have it
_REMEDY: Final = "submit again without --tune-hypernetwork, or with another --seed"


@dataclass(frozen=True)
class TuningSettings:
    """How hypernetwork and embedding are tuned; the defaults were chosen on kinds of tasks that the base has not seen
    (docs/tuning.md).

    Args:
        steps: optimiser steps, at least; more rows get more of them, see `for_rows`.
        passes: how often each row is to be seen.
        most_steps: that many rows ask for.
        batch: rows of the new task a step.
        learning_rate: of the hypernetwork's weights, with Adam; it falls linearly to 0, as does the other.
        z_learning_rate: of the embedding.
        smoothing: share of each target that is spread over all labels: weights that learn few rows by heart would
            else be far too sure of everything, which costs log-loss and makes the task a burden on later tunings.
        beta: weight of the regulariser in the loss; 0 holds nothing.
        regulariser: what holds the earlier tasks.
        sampled: earlier embeddings a step, drawn in shuffled rounds; for the divergence each with a text.
    """

    steps: int = 80
    passes: int = 10
    most_steps: int = 400
    batch: int = 8
    learning_rate: float = 1e-4
    z_learning_rate: float = 1e-2
    smoothing: float = 0.2
    beta: float = 30.0
    regulariser: Regulariser = "drift"
    sampled: int = 16

    def for_rows(self, count: int) -> TuningSettings:
        """The same with steps enough to see each of so many rows `passes` times, `most_steps` at most."""
        steps = min(self.most_steps, math.ceil(self.passes * count / self.batch))
        return replace(self, steps=max(self.steps, steps))

    def for_part(self, count: int, of: int) -> TuningSettings:
        """For so many `of` the rows: each is seen as often as where all are tuned on."""
        whole = self.for_rows(of)
        return replace(whole, steps=math.ceil(whole.steps * count / of))


@dataclass(frozen=True)
class Tuned:
    """What came of it.

    Args:
        hypernetwork: frozen, on the device of the engine's own.
        z: (t,) float32.
        losses: loss of the new task at each step, nats.
        penalties: the regulariser at each step, without β; 0 where nothing is held.
        drift: how far the weights moved that are generated for earlier embeddings, the mean over all of them.
    """

    hypernetwork: Hypernetwork
    z: np.ndarray
    losses: tuple[float, ...]
    penalties: tuple[float, ...]
    drift: float

    def to_json(self) -> dict[str, Any]:
        """The course of the tuning (without the weights) as a JSON-compatible document."""
        return {
            "steps": len(self.losses), "loss": list(self.losses), "penalty": list(self.penalties), "drift": self.drift,
        }  # fmt: skip

    def shortened(self, before: Hypernetwork, z: np.ndarray, share: float) -> Tuned:
        """After this share of the way from the hypernetwork and embedding (t,) before; the course stays the whole's."""
        moved = embedding_between(z, self.z, share)
        return replace(self, hypernetwork=between(before, self.hypernetwork, share), z=moved)


def tune(
    engine: Engine,
    z: np.ndarray,
    rows: LabelledRows,
    trie: LabelTrie,
    earlier: Sequence[ProtectedTask],
    settings: TuningSettings,
    seed: int,
    *,
    canaries: Sequence[Sequence[int]],
    on_step: Callable[[int, float], None] = lambda *_: None,
    at_once: RowsAtOnce | None = None,
) -> Tuned:
    """Tune a copy of the engine's hypernetwork and the embedding. The same bytes for the same arguments on a CPU.

    Adam without weight decay; the backbone with its norms stays frozen, the engine's own hypernetwork is not touched.

    Args:
        engine: backbone, and the hypernetwork to start from.
        z: (t,) the trained embedding of the new task.
        rows: labelled rows of the new task.
        trie: of its K label words.
        earlier: embeddings of other tasks; without any nothing is held.
        settings: steps, rates and the regulariser.
        seed: of the batches' order and of the draws.
        canaries: token ids of texts for the divergence. The guard must judge by others: these are trained on.
        on_step: told step (from 1) and the new task's loss; may raise to stop.
        at_once: how many rows fit into the memory; kept for further calls.

    Raises:
        JobFailedError: the loss or a weight is not finite.
        OutOfMemoryError: the GPU has no room for a single row.
        ValueError: the divergence is asked for without canaries.
    """
    if earlier and settings.beta and settings.regulariser == "divergence" and not canaries:
        raise ValueError("the divergence needs canary texts")
    at_once = at_once or RowsAtOnce(AT_ONCE)
    tuned = copy.deepcopy(engine.hypernetwork).requires_grad_(True)
    weights = list(tuned.parameters())
    embedding = nn.Parameter(torch.from_numpy(np.array(z, dtype=np.float32))[None].to(weights[0].device))  # (1, t)
    parameters = [*weights, embedding]
    optimiser = torch.optim.Adam(
        [{"params": weights, "lr": settings.learning_rate}, {"params": [embedding], "lr": settings.z_learning_rate}]
    )
    falling = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda step: 1.0 - step / settings.steps)
    bound = Steps.norm_per_root * embedding.shape[1] ** 0.5
    smoothed = (1.0 - settings.smoothing) * rows.targets + settings.smoothing / rows.targets.shape[1]
    targets = torch.from_numpy(np.ascontiguousarray(smoothed, dtype=np.float32)).to(engine.device)
    holding = Holding(engine, earlier, settings.regulariser, canaries)

    def gradient(chosen: np.ndarray, drawn: Drawn) -> tuple[float, float]:
        """Leaves the gradient in the parameters, and returns the new task's loss and the regulariser."""
        optimiser.zero_grad()
        chosen = chosen[np.argsort([len(rows.ids[row]) for row in chosen], kind="stable")]

        def of_part(part: slice) -> tuple[float, tuple[Tensor, ...]]:
            ids, labels = [rows.ids[row] for row in chosen[part]], targets[chosen[part]]
            scores = engine.log_probabilities(ids, embedding, [trie], hypernetwork=tuned)
            share = -(labels * scores).sum() / len(chosen)
            return float(share.detach()), torch.autograd.grad(share, parameters)

        parts = at_once.parts_of_like_length([len(rows.ids[row]) for row in chosen], engine.device)
        losses, moved = zip(*side_by_side(engine.device, of_part, parts), strict=True)
        for parameter, gradients in zip(parameters, zip(*moved, strict=True), strict=True):
            parameter.grad = sum(gradients[1:], gradients[0])
        return sum(losses), holding.backward(tuned, drawn, settings.beta, at_once) if settings.beta else 0.0

    losses, penalties = [], []
    order = batches([len(ids) for ids in rows.ids], settings.steps, settings.batch, seed)
    held = draws(len(earlier), len(canaries), settings.sampled, settings.steps, seed)
    for step, (chosen, drawn) in enumerate(zip(order, held, strict=True), 1):
        widest = max(len(chosen), len(drawn.embeddings))
        loss, penalty = at_once.fitting(widest, partial(gradient, chosen, drawn))
        if not math.isfinite(loss + penalty):
            raise JobFailedError(f"Tuning the hypernetwork diverged: loss {loss + penalty} at step {step}.", _REMEDY)
        nn.utils.clip_grad_norm_(parameters, CLIP)
        optimiser.step()
        falling.step()
        with torch.no_grad():
            embedding.mul_(torch.clamp(bound / embedding.norm(), max=1.0))
        losses.append(loss)
        penalties.append(penalty)
        on_step(step, loss)
    if not all(bool(torch.isfinite(tensor).all()) for tensor in (*weights, embedding)):
        raise JobFailedError("Tuning the hypernetwork diverged: a weight is not finite.", _REMEDY)
    tuned.requires_grad_(False)
    for weight in weights:
        weight.grad = None
    moved = embedding.detach()[0].cpu().numpy()
    return Tuned(tuned, moved, tuple(losses), tuple(penalties), holding.drift(tuned))
