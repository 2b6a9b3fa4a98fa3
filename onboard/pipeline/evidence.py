"""The rows that judge a tuning, and the task's combined answers on them as they would be published."""

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

PREDICTED: Final = "cross-validated rows"
HELD: Final = "held-out rows"


@dataclass(frozen=True)
class ReadoutEvidence:
    """Readout answers on rows that trained neither the readout nor the embedding.

    Args:
        readout: its probabilities (m, K), out of fold for rows in folds; None without a readout.
        targets: (m, K) of the rows, times the weight of each row.
        usual: usual share of the readout; 0 without one.
    """

    readout: np.ndarray | None
    targets: np.ndarray
    usual: float

    @classmethod
    def of(cls, trained: TrainOutput, answers: np.ndarray | None, targets: np.ndarray) -> Self:
        """Return the answers of the training's readout, if any, on rows with these targets."""
        return cls(answers, targets, 0.0 if trained.readout is None else trained.readout.share)

    def published(self, scores: np.ndarray) -> np.ndarray:
        """Return log-probabilities (m, K) of embedding and readout combined, at the share that would be published."""
        if self.readout is None:
            return scores
        alone = np.exp(scores).astype(np.float64)
        return log_of(blend(alone, self.readout, choose_share(alone, self.readout, self.targets, self.usual)))

    def loss(self, scores: np.ndarray) -> float:
        """Return the mean loss of the combination in nats."""
        return mean_loss(self.published(scores), self.targets)


def beside_in_folds(bench: Workbench, trained: TrainOutput) -> ReadoutEvidence:
    """Return the out-of-fold answers of the readout on training rows; the training must have folds."""
    assert trained.folds is not None
    return ReadoutEvidence.of(
        trained, trained.read_out, bench.weighted(rows_in_folds(bench.dataset, trained.folds.fold))
    )


def beside_held(bench: Workbench, trained: TrainOutput, checkpoint: Callable[[], None]) -> ReadoutEvidence:
    """Return the answers of the readout on the held-out rows that may choose."""
    rows, readout = held_rows(bench), trained.readout
    read = None if readout is None else readout.probabilities(bench.features(rows, checkpoint))
    return ReadoutEvidence.of(trained, read, bench.weighted(rows))


def judged_loss(
    bench: Workbench, trained: TrainOutput, words: Sequence[str], z: np.ndarray, checkpoint: Callable[[], None]
) -> float:
    """Return the mean loss in nats of an embedding (t,) as it would be published, on held-out rows.

    Without held-out rows it is the loss of the embedding alone on training rows, which the readout has memorized.

    Args:
        bench: the job's material, under the hypernetwork of the embedding.
        trained: supplies the readout.
        words: words that represent the labels.
        z: the embedding.
        checkpoint: stops the work.
    """
    if rows := held_rows(bench):
        return beside_held(bench, trained, checkpoint).loss(bench.scores(rows, words, z, checkpoint))
    return bench.loss(fitted_rows(bench), words, z, checkpoint)


def held_rows(bench: Workbench) -> tuple[Example, ...]:
    """Return the held-out rows that measure a tuning; none if there are too few to choose anything."""
    held = bench.dataset.validation
    return tuple(held[row] for row in choosing(len(held)))


def fitted_rows(bench: Workbench) -> tuple[Example, ...]:
    """Return the training rows that an embedding is measured on."""
    train = bench.dataset.train
    return tuple(train[row] for row in fitted(len(train)))
