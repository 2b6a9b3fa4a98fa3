"""How the training goes, without torch: whoever only estimates how long it takes reads its numbers here, too."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final, Literal

from onboard.model.steps import Steps

Regulariser = Literal["drift", "divergence"]

FOLDS: Final = 4
FEWEST_CURVE_ROWS: Final = 16  # below them a half of a fold's rows is too little to train on
FEWEST_CHOOSING: Final = 16  # held-out rows below which nothing is chosen on them
MOST_CHOOSING: Final = 256
SHARES: Final = (1.0, 0.5, 0.25, 0.125)  # of the way that a training or a tuning went, of which one is taken


def batches_an_epoch(count: int, size: float) -> int:
    """How many batches of `size` rows, in the mean of an epoch, so many rows make."""
    return min(count, max(1, int(count / size)))


@dataclass(frozen=True)
class FewShotSettings:
    """How an embedding is trained (docs/explanation/training.md).

    Args:
        steps: optimiser steps, at least; many rows get more of them, see `for_rows`.
        batch: rows a step, at least.
        passes: how often each of many rows is to be seen.
        most_batch, most_steps: that many rows ask for.
        learning_rate: of Adam, falls linearly to 0; inputs of so few numbers want far more than weights do.
        averaged_share: the result is the mean of z over this last share of the steps.
        norm_per_root: bound of ‖z‖ as a multiple of √t; a large z drowns layer and position ids in the conditioning.
        seeds: orders of the batches that are trained side by side; the result is their mean.
        fold_seeds: the same of each fold of the cross-validation.
        curve: shares of each fold's training rows that are trained on too, to see what more rows would bring; where
            rows are held out, whether two halves of the training rows are.
        curve_trained: whether embeddings are trained for it. Where a readout answers as well, readouts of fewer rows
            make the curve: they cost nothing, and most of the answer is theirs.
    """

    steps: int = 80
    batch: int = 2
    passes: int = 2
    most_batch: int = 8
    most_steps: int = 400
    learning_rate: float = 0.2
    averaged_share: float = Steps.averaged_share
    norm_per_root: float = Steps.norm_per_root
    seeds: int = 2
    fold_seeds: int = 1
    curve: tuple[float, ...] = (0.5,)
    curve_trained: bool = True

    def for_rows(self, count: int) -> FewShotSettings:
        """The same, to see each of so many rows `passes` times: by larger batches first, then by more steps."""
        seen = self.passes * count
        batch = max(self.batch, min(self.most_batch, math.ceil(seen / self.steps)))
        steps = max(self.steps, min(self.most_steps, math.ceil(seen / batch)))
        return replace(self, steps=steps, batch=batch)


# Learning rates for few rows and few steps (docs/reference/methods.md). The other methods use the authors' rates, which
# are meant for thousands of steps.
FEW_STEPS_RATES: Final[Mapping[str, float]] = {
    **dict.fromkeys(("adapters", "adapters-dagger", "pfeiffer-adapter", "adapter-drop"), 2e-3),
    **dict.fromkeys(("adapter-low-rank", "phm-adapter", "compacter", "compacter++", "bitfit"), 6e-3),
    "prompt-tuning-r": 0.3,
}


@dataclass(frozen=True)
class OwnWeightsSettings:
    """How task-specific weights are trained (docs/reference/methods.md). See `FEW_STEPS_RATES` for the rate.

    Args:
        steps: optimiser steps, at least.
        batch: rows a step, at least.
        passes: how often each of many rows is to be seen.
        most_batch, most_steps: that many rows ask for.
    """

    steps: int = 60
    batch: int = 8
    passes: int = 3
    most_batch: int = 32
    most_steps: int = 1200

    def for_rows(self, count: int) -> OwnWeightsSettings:
        """The same, to see each of so many rows `passes` times: by larger batches first, then by more steps."""
        seen = self.passes * count
        batch = max(self.batch, min(self.most_batch, math.ceil(seen / self.steps)))
        return replace(self, steps=max(self.steps, min(self.most_steps, math.ceil(seen / batch))), batch=batch)

    def for_part(self, count: int, of: int) -> OwnWeightsSettings:
        """For so many `of` the rows: each is seen as often as where all are trained on."""
        return replace(self, steps=math.ceil(self.steps * count / of))


@dataclass(frozen=True)
class TuningSettings:
    """How hypernetwork and embedding are tuned; the defaults were chosen on kinds of tasks that the base has not seen
    (docs/explanation/tuning.md).

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
        look: share of the steps that are taken first, to see whether there is anything to gain.
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
    look: float = 0.2

    def for_rows(self, count: int) -> TuningSettings:
        """The same with steps enough to see each of so many rows `passes` times, `most_steps` at most."""
        steps = min(self.most_steps, math.ceil(self.passes * count / self.batch))
        return replace(self, steps=max(self.steps, steps))

    def for_part(self, count: int, of: int) -> TuningSettings:
        """For so many `of` the rows: each is seen as often as where all are tuned on."""
        whole = self.for_rows(of)
        return replace(whole, steps=math.ceil(whole.steps * count / of))

    def for_look(self) -> TuningSettings:
        """The same in the few steps of a first look."""
        return replace(self, steps=math.ceil(self.look * self.steps))
