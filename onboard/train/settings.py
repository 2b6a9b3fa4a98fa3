"""Settings of the trainings, without torch, so that estimates of the duration can import them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final, Literal

from onboard.model.steps import Steps

Regulariser = Literal["drift", "divergence"]

FOLDS: Final = 4
FEWEST_CURVE_ROWS: Final = 16  # with fewer, half of a fold's rows is too little to train on
FEWEST_CHOOSING: Final = 16  # minimum number of held-out rows for any choice
MOST_CHOOSING: Final = 256
SHARES: Final = (1.0, 0.5, 0.25, 0.125)  # candidate shares of the way of a training or tuning


def batches_an_epoch(count: int, size: float) -> int:
    """Return the number of batches per epoch for `count` rows and a mean batch of `size` rows."""
    return min(count, max(1, int(count / size)))


@dataclass(frozen=True)
class FewShotSettings:
    """How an embedding is trained (docs/explanation/training.md).

    Args:
        steps: minimum number of optimizer steps; more rows increase it, see `for_rows`.
        batch: minimum rows per step.
        passes: target number of passes over many rows.
        most_batch, most_steps: maximums for many rows.
        learning_rate: of Adam, falls linearly to 0; so few inputs need a far larger rate than weights do.
        averaged_share: the result is the mean of z over this last share of the steps.
        norm_per_root: bound of ‖z‖ as a multiple of √t; a large z drowns layer and position ids in the conditioning.
        seeds: batch orders that are trained at the same time; the result is their mean.
        fold_seeds: the same for each fold of the cross-validation.
        curve: shares of each fold's training rows to train on as well, for the learning curve; with held-out rows, any
            share requests two halves of the training rows.
        curve_trained: whether embeddings are trained for the curve. If there is a readout, readouts of fewer rows make
            the curve: they need no training and contribute most of the answer.
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
        """Return settings that see each of `count` rows `passes` times, by larger batches first, then by more steps."""
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
        steps: minimum number of optimizer steps.
        batch: minimum rows per step.
        passes: target number of passes over many rows.
        most_batch, most_steps: maximums for many rows.
    """

    steps: int = 60
    batch: int = 8
    passes: int = 3
    most_batch: int = 32
    most_steps: int = 1200

    def for_rows(self, count: int) -> OwnWeightsSettings:
        """Return settings that see each of `count` rows `passes` times, by larger batches first, then by more steps."""
        seen = self.passes * count
        batch = max(self.batch, min(self.most_batch, math.ceil(seen / self.steps)))
        return replace(self, steps=max(self.steps, min(self.most_steps, math.ceil(seen / batch))), batch=batch)

    def for_part(self, count: int, of: int) -> OwnWeightsSettings:
        """Return settings for `count` out of `of` rows, with the same number of passes."""
        return replace(self, steps=math.ceil(self.steps * count / of))


@dataclass(frozen=True)
class TuningSettings:
    """How hypernetwork and embedding are tuned. The defaults were chosen on kinds of tasks that the base has not seen
    (docs/explanation/tuning.md).

    Args:
        steps: minimum number of optimizer steps; more rows increase it, see `for_rows`.
        passes: target number of passes over the rows.
        most_steps: maximum for many rows.
        batch: rows of the new task per step.
        learning_rate: of the hypernetwork's weights, with Adam; both rates fall linearly to 0.
        smoothing: share of each target that is spread over all labels. Otherwise weights that memorize few rows would
            be overconfident, which costs log-loss and makes the task a burden on later tunings.
        beta: weight of the regularizer in the loss; 0 disables it.
        regulariser: the regularizer that protects earlier tasks.
        sampled: earlier embeddings per step, drawn in shuffled rounds; for "divergence", each with a text.
        look: share of the steps of the trial, which shows whether there is anything to gain.
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
        """Return settings with enough steps to see each of `count` rows `passes` times, at most `most_steps`."""
        steps = min(self.most_steps, math.ceil(self.passes * count / self.batch))
        return replace(self, steps=max(self.steps, steps))

    def for_part(self, count: int, of: int) -> TuningSettings:
        """Return settings for `count` out of `of` rows, with the same number of passes."""
        whole = self.for_rows(of)
        return replace(whole, steps=math.ceil(whole.steps * count / of))

    def for_look(self) -> TuningSettings:
        """Return settings for the few steps of the trial."""
        return replace(self, steps=math.ceil(self.look * self.steps))
