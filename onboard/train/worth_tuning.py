"""The rule of `--tune-hypernetwork auto`: tune where the embedding alone leaves enough to gain.

64 numbers can only reach what the hypernetwork has seen the like of. Where they cannot, it shows: out of fold or on
held-out rows the embedding is no better than words counted on the same rows (TF-IDF) or than the commonest label. That
the probe found nothing worth starting from shows nothing: the label words alone may say enough (decision 14). The rule
looks at the figures themselves and not at their intervals, which 32 rows make wide: behind it come the guard and a
comparison with the embedding alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from onboard.data.splits import evenly_spaced

FEWEST_ROWS: Final = 16  # below them the accuracies say nothing
GOOD: Final = 0.9  # accuracy from which on little is left to gain
BY_HEART: Final = 0.05  # of ln K: a training loss below it says that the rows are known by heart already
MOST_FITTED: Final = 2048  # training rows whose loss is measured


@dataclass(frozen=True)
class EmbeddingAlone:
    """What probe, training and evaluation left of the embedding alone.

    Accuracies are shares, on held-out rows or else out of fold; None where nothing was held out or for a regression.

    Args:
        accuracy: of the embedding.
        rows: that it was measured on.
        majority: of always giving the commonest label, on the same rows.
        tfidf: of the TF-IDF baseline, on the same rows.
        training_loss: measures the mean loss of the trained embedding on the training rows that are `fitted`, nats;
            called only where nothing cheaper decides.
        labels: how many (K).
        who: what is measured, in words: the embedding alone, or with its readout.
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
    """Whether to tune, and why or why not, in one sentence for the report."""

    tune: bool
    reason: str


def fitted(count: int) -> list[int]:
    """Places of those of so many training rows that show whether they are known by heart: at most 2,048."""
    return evenly_spaced(count, MOST_FITTED)


def worth_tuning(alone: EmbeddingAlone) -> Worth:
    """Whether the embedding alone leaves enough to gain; the first of these that holds decides.

    1. There is no accuracy, or of fewer than 16 rows: no.
    2. The accuracy is 90% or more: no.
    3. The training loss is below a twentieth of ln K, what guessing among K labels costs: no, the rows are known by
       heart.
    4. The accuracy is not above TF-IDF's, or not above that of the commonest label: yes.
    5. Otherwise: no.
    """
    if alone.accuracy is None or alone.rows < FEWEST_ROWS:
        return Worth(False, "No rows show how much the embedding alone leaves to gain.")
    shown = f"{alone.accuracy:.0%} of {alone.rows} rows"
    if alone.accuracy >= GOOD:
        return Worth(False, f"{alone.who} gets {shown} right: little is left to gain.")
    if alone.training_loss() < BY_HEART * math.log(alone.labels):
        return Worth(False, "The embedding alone knows its training rows by heart: tuning has nothing more to fit.")
    for bar, whose in ((alone.majority, "the commonest label"), (alone.tfidf, "TF-IDF")):
        if bar is not None and alone.accuracy <= bar:
            return Worth(True, f"{alone.who} gets {shown} right, {whose} {bar:.0%}.")
    return Worth(False, f"{alone.who} gets {shown} right, more than the commonest label and TF-IDF.")
