"""The rule of `--tune-hypernetwork auto`: tune if the embedding alone leaves enough to gain.

An embedding only works for tasks that resemble the ones the hypernetwork was trained on. Otherwise, out of fold or on
held-out rows, it is not better than TF-IDF on the same rows or than the most frequent label. A probe that finds no good
start proves nothing, as the label words alone may be enough (decision 14). The rule uses the accuracies and not their
intervals, which are wide for 32 rows: the guard and a comparison with the embedding alone follow anyway.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from onboard.data.splits import evenly_spaced

FEWEST_ROWS: Final = 16  # with fewer, accuracies are too imprecise
GOOD: Final = 0.9  # accuracy above which little is left to gain
BY_HEART: Final = 0.05  # as a share of ln K: a lower training loss shows that the rows are memorized
MOST_FITTED: Final = 2048  # training rows whose loss is measured


@dataclass(frozen=True)
class EmbeddingAlone:
    """Results of probe, training and evaluation for the embedding alone.

    Accuracies are shares, on held-out rows or else out of fold; None without either and for regressions.

    Args:
        rows: number of rows that it was measured on.
        majority: accuracy of the most frequent label, on the same rows.
        tfidf: accuracy of the TF-IDF baseline, on the same rows.
        training_loss: measures the mean loss of the trained embedding on the `fitted` training rows, nats; called only
            if nothing cheaper decides.
        labels: number of labels (K).
        who: description of the measured model: the embedding alone, or with its readout.
    """

    accuracy: float | None
    rows: int
    majority: float | None
    tfidf: float | None
    training_loss: Callable[[], float]
    labels: int
    who: str = "The embedding alone"


@dataclass(frozen=True)
class Worth:
    """Whether to tune, and why, in one sentence for the report."""

    tune: bool
    reason: str


def fitted(count: int) -> list[int]:
    """Return the indices of training rows that show whether they are memorized: at most 2,048."""
    return evenly_spaced(count, MOST_FITTED)


def worth_tuning(alone: EmbeddingAlone) -> Worth:
    """Decide whether the embedding alone leaves enough to gain; the first of these rules that applies decides.

    1. There is no accuracy, or it comes from fewer than 16 rows: no.
    2. The accuracy is 90% or more: no.
    3. The training loss is below a twentieth of ln K, the cost of guessing among K labels: no, the rows are memorized.
    4. The accuracy is not above TF-IDF's, or not above that of the most frequent label: yes.
    5. Otherwise: no.
    """
    if alone.accuracy is None or alone.rows < FEWEST_ROWS:
        return Worth(False, "No rows show how much there is to gain over the embedding alone.")
    shown = f"{alone.accuracy:.0%} of {alone.rows} rows"
    if alone.accuracy >= GOOD:
        return Worth(False, f"{alone.who} gets {shown} right, so there is little to gain.")
    if alone.training_loss() < BY_HEART * math.log(alone.labels):
        return Worth(False, "The embedding alone has memorized its training rows, so tuning has nothing more to fit.")
    for bar, whose in ((alone.majority, "the most frequent label"), (alone.tfidf, "TF-IDF")):
        if bar is not None and alone.accuracy <= bar:
            return Worth(True, f"{alone.who} gets {shown} right, {whose} {bar:.0%}.")
    return Worth(False, f"{alone.who} gets {shown} right, more than the commonest label and TF-IDF.")
