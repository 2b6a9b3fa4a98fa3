"""What more labelled rows would buy: accuracy by number of training rows, extrapolated from out-of-fold predictions.

Accuracy grows about linearly with the logarithm of the rows in the range of a few to a few hundred. The interval comes
from a bootstrap of folds and of rows within them: embeddings differ by what they were trained on, not only by luck on
the rows that are predicted. Only rows that became right or wrong as more were trained on tell anything, and a bootstrap
of hardly any would be sure of what it has not seen: where they are few, nothing is said. Nor is it of embeddings that
give every text the same answer: how many of these are right is the share of a label, whatever was learned.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from onboard.domain.report import MoreRowsJson
from onboard.model.cost import Passes
from onboard.statistics.bootstrap import draws_of_groups

MORE_ROWS: Final = 32
FEWEST_ROWS: Final = 24  # out-of-fold predictions below which an extrapolation says nothing
FEWEST_CHANGED: Final = 6  # rows that became right or wrong: of fewer, all go one way by chance in over 5% (2 · 0.5⁵)
CURVE_SECONDS: Final = 16.0  # that a training may take with its curve: see `onboard.train.learning`
_DRAWS: Final = 1000
_NO_TIME: Final = "Training on fewer rows as well would take too long here."


@dataclass(frozen=True)
class MoreRows:
    """The learning curve, and what it says of more rows.

    Args:
        points: rows that were trained on (on average), share of rows predicted right.
        more: how many more rows the question is about.
        gain: expected change of accuracy (a share), with its 95% interval; None where it cannot be told.
        reason: why it cannot be told.
        of_readout: whether it is the curve of the readout alone, as training on fewer rows would take too long.
    """

    points: Sequence[tuple[float, float]]
    more: int = MORE_ROWS
    gain: tuple[float, float, float] | None = None
    reason: str | None = None
    of_readout: bool = False

    def to_json(self) -> MoreRowsJson:
        """points, more, gain, low, high, reason, of_readout."""
        gain, low, high = self.gain or (None, None, None)
        return {
            "points": [{"rows": rows, "accuracy": accuracy} for rows, accuracy in self.points],
            "more": self.more, "gain": gain, "low": low, "high": high, "reason": self.reason,
            "of_readout": self.of_readout,
        }  # fmt: skip


def affordable_curve(trained: float, tokens: float) -> bool:
    """Whether a CPU has time for a training with its learning curve: of so many rows, of so many tokens each."""
    return Passes(trained=trained).seconds(tokens) <= CURVE_SECONDS


def more_rows(
    scores: Mapping[float, np.ndarray], rows: Mapping[float, float], targets: np.ndarray, fold: np.ndarray, there: int,
    *, of_readout: bool = False,
) -> MoreRows:  # fmt: skip
    """What 32 more labelled rows would buy.

    Args:
        scores: by share of each fold's rows that was trained on, log-probabilities (m, K) of the rows in folds; empty
            where there was no time for that.
        rows: how many rows that is, by share, those that the start was trained on included.
        targets: (m, K), one-hot.
        fold: of each row (m,).
        there: labelled rows that there are, in folds or not.
        of_readout: whether the readout alone has answered.
    """
    if not scores:
        return MoreRows((), reason=_NO_TIME)
    return replace(_extrapolated(scores, rows, targets, fold, there), of_readout=of_readout)


def _extrapolated(
    scores: Mapping[float, np.ndarray], rows: Mapping[float, float], targets: np.ndarray, fold: np.ndarray, there: int
) -> MoreRows:
    shares = sorted(scores)
    constant = [rows[share] for share in shares if _constant(scores[share].argmax(1), targets.argmax(1), fold)]
    if constant:
        reason = (
            f"Trained on {max(constant):.0f} rows it gave every text the same answer, which no curve can go on from."
        )
        return MoreRows((), reason=reason)
    right = np.stack([scores[share].argmax(1) == targets.argmax(1) for share in shares]).astype(np.float64)  # (P, n)
    sizes = np.array([rows[share] for share in shares])
    points = [(float(size), float(of.mean())) for size, of in zip(sizes, right, strict=True)]
    count, reason = len(fold), _why_none(right, sizes)
    if reason:
        return MoreRows(points, reason=reason)
    growth = float(np.log((there + MORE_ROWS) / there))
    gain = _slope(sizes, right.mean(1)) * growth
    groups = [np.flatnonzero(fold == number) for number in np.unique(fold)]
    drawn = np.array([_slope(sizes, right[:, chosen].mean(1)) for chosen in draws_of_groups(groups, _DRAWS)]) * growth
    low, high = (float(end) for end in np.percentile(drawn, (2.5, 97.5)))
    low, high = min(low, gain - 1.0 / count), max(high, gain + 1.0 / count)  # a row is the least that can be seen
    accuracy = points[-1][1]
    gain, low, high = (float(value) for value in np.clip((gain, low, high), -accuracy, 1.0 - accuracy))
    return MoreRows(points, gain=(gain, low, high))


def _why_none(right: np.ndarray, sizes: np.ndarray) -> str:
    """Why nothing can be told of what was answered right (P, n) after so many rows (P,); "" where it can."""
    count = right.shape[1]
    if len(set(sizes.tolist())) < 2:
        return "Only one number of rows was trained on."
    if count < FEWEST_ROWS:
        return f"{count} rows are too few to extrapolate from."
    if right[-1].all():
        return "Everything was answered right out of fold: more labels cannot show a gain here."
    if (right != right[0]).any(0).sum() < FEWEST_CHANGED:
        return "Too few rows became right or wrong as more were trained on."
    return ""


def _constant(answers: np.ndarray, true: np.ndarray, fold: np.ndarray) -> bool:
    """Whether half of the embeddings or more (one a fold) answered all alike (n,) where the rows are not alike (n,)."""
    parts = [fold == number for number in np.unique(fold)]
    alike = [len(set(answers[part].tolist())) == 1 for part in parts if len(set(true[part].tolist())) > 1]
    return 2 * sum(alike) >= len(alike) > 0


def _slope(sizes: np.ndarray, accuracies: np.ndarray) -> float:
    """Growth of accuracy per unit of log rows, by least squares."""
    centred = np.log(sizes) - np.log(sizes).mean()
    return float(centred @ accuracies / (centred @ centred))
