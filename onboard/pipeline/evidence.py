"""The rows that judge a tuning, and what a task answers there as it is published: embedding and readout together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Self

import numpy as np

from onboard.domain.dataset import Example
from onboard.pipeline.material import Workbench
from onboard.pipeline.outputs import TrainOutput
from onboard.statistics.probabilities import blend
from onboard.statistics.share import choose_share
from onboard.train.crossvalidation import log_of, mean_loss, rows_in_folds
from onboard.train.learning import choosing
from onboard.train.worth_tuning import fitted

PREDICTED: Final = "rows that were predicted without themselves"
HELD: Final = "held-out rows"


@dataclass(frozen=True)
class Beside:
    """What answers beside an embedding on rows that trained neither.

    Args:
        readout: its probabilities (m, K), of rows in folds without their fold; None where there is no readout.
        targets: (m, K) of the rows, times what each counts.
        usual: usual share of the readout; 0 where there is none.
    """

    readout: np.ndarray | None
    targets: np.ndarray
    usual: float

    @classmethod
    def of(cls, trained: TrainOutput, answers: np.ndarray | None, targets: np.ndarray) -> Self:
        """These answers of its readout, if it has one, on rows with these targets."""
        return cls(answers, targets, 0.0 if trained.readout is None else trained.readout.share)

    def published(self, scores: np.ndarray) -> np.ndarray:
        """Log-probabilities (m, K) of an embedding with the readout, at the share that it would be published with."""
        if self.readout is None:
            return scores
        alone = np.exp(scores).astype(np.float64)
        return log_of(blend(alone, self.readout, choose_share(alone, self.readout, self.targets, self.usual)))

    def loss(self, scores: np.ndarray) -> float:
        """Mean loss of the same in nats."""
        return mean_loss(self.published(scores), self.targets)


def beside_in_folds(bench: Workbench, trained: TrainOutput) -> Beside:
    """Of the training rows that are in a fold; the training has folds."""
    assert trained.folds is not None
    return Beside.of(trained, trained.read_out, bench.weighted(rows_in_folds(bench.dataset, trained.folds.fold)))


def beside_held(bench: Workbench, trained: TrainOutput, checkpoint: Callable[[], None]) -> Beside:
    """Of the held-out rows that choose."""
    rows, readout = held_rows(bench), trained.readout
    read = None if readout is None else readout.probabilities(bench.features(rows, checkpoint))
    return Beside.of(trained, read, bench.weighted(rows))


def judged_loss(
    bench: Workbench, trained: TrainOutput, words: Sequence[str], z: np.ndarray, checkpoint: Callable[[], None]
) -> float:
    """Mean loss in nats of an embedding (t,) as it would be published, on held-out rows; without any, alone on training
    rows: a readout knows those by heart.

    Args:
        bench: the job's material, under the hypernetwork of the embedding.
        trained: names the readout.
        words: that stand for the labels.
        z: the embedding.
        checkpoint: stops the work.
    """
    if rows := held_rows(bench):
        return beside_held(bench, trained, checkpoint).loss(bench.scores(rows, words, z, checkpoint))
    return bench.loss(fitted_rows(bench), words, z, checkpoint)


def held_rows(bench: Workbench) -> tuple[Example, ...]:
    """The held-out rows that a tuning is measured on; none where they are too few to choose anything."""
    held = bench.dataset.validation
    return tuple(held[row] for row in choosing(len(held)))


def fitted_rows(bench: Workbench) -> tuple[Example, ...]:
    """The training rows that an embedding is measured on."""
    train = bench.dataset.train
    return tuple(train[row] for row in fitted(len(train)))
