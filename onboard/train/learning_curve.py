"""Estimate the gain from more labeled rows: extrapolate accuracy by number of training rows, out of fold.

Between a few and a few hundred rows, accuracy grows about linearly with the logarithm of the rows. The interval comes
from a bootstrap of folds and of rows within them, because embeddings vary with their training rows as well as with the
rows that they predict. Only rows that become right or wrong as the training grows are informative. If there are few of
them, a bootstrap would be overconfident, and there is no estimate. Neither is there one if an embedding gives every
text the same answer: its accuracy is then the share of a label, whatever it learned.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from onboard.contract.report import CurvePoint, ExpectedGain
from onboard.model.cost import Passes
from onboard.statistics.bootstrap import draws_of_groups

MORE_ROWS: Final = 32
FEWEST_ROWS: Final = 24  # minimum number of out-of-fold predictions for an extrapolation
FEWEST_CHANGED: Final = 6  # rows that became right or wrong; five all change one way by chance in over 5% (2 · 0.5⁵)
CURVE_SECONDS: Final = 16.0  # maximum duration of a training with its curve: see `onboard.train.learning`
_DRAWS: Final = 1000
_NO_TIME: Final = "Training on fewer rows as well would take too long."


@dataclass(frozen=True)
class MoreRows:
    """The learning curve and its extrapolation.

    Args:
        points: mean number of training rows, and share of rows predicted right.
        gain: expected change of accuracy (a share), with its 95% interval; None if unknown.
        reason: why it is unknown.
        of_readout: whether it is the curve of the readout alone, because training on fewer rows would take too long.
    """

    points: Sequence[tuple[float, float]]
    more: int = MORE_ROWS
    gain: tuple[float, float, float] | None = None
    reason: str | None = None
    of_readout: bool = False

    def to_document(self) -> ExpectedGain:
        """Return the part of the job's result."""
        gain, low, high = self.gain or (None, None, None)
        points = tuple(CurvePoint(rows=rows, accuracy=accuracy) for rows, accuracy in self.points)
        return ExpectedGain(
            points=points, more=self.more, gain=gain, low=low, high=high, reason=self.reason,
            of_readout=self.of_readout,
        )  # fmt: skip


def affordable_curve(trained: float, tokens: float) -> bool:
    """Return whether a CPU has time for a learning curve with `trained` rows of `tokens` tokens each."""
    return Passes(trained=trained).seconds(tokens) <= CURVE_SECONDS


def more_rows(
    scores: Mapping[float, np.ndarray], rows: Mapping[float, float], targets: np.ndarray, fold: np.ndarray, there: int,
    *, of_readout: bool = False,
) -> MoreRows:  # fmt: skip
    """Estimate the gain from 32 more labeled rows.

    Args:
        scores: log-probabilities (m, K) of the rows in folds, by share of each fold's training rows; empty if there was
            no time for them.
        rows: number of training rows by share, including those of the start.
        targets: (m, K), one-hot.
        fold: fold of each row (m,).
        there: number of existing labeled rows, in folds or not.
        of_readout: whether the scores are those of the readout alone.
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
            f"Trained on {max(constant):.0f} rows, the model gave every text the same answer, "
            "so the curve cannot be extrapolated."
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
    low, high = min(low, gain - 1.0 / count), max(high, gain + 1.0 / count)  # one row is the smallest visible change
    accuracy = points[-1][1]
    gain, low, high = (float(value) for value in np.clip((gain, low, high), -accuracy, 1.0 - accuracy))
    return MoreRows(points, gain=(gain, low, high))


def _why_none(right: np.ndarray, sizes: np.ndarray) -> str:
    """Return why the answers (P, n) after so many rows (P,) allow no estimate; "" if they do."""
    count = right.shape[1]
    if len(set(sizes.tolist())) < 2:
        return "Only one number of rows was trained on."
    if count < FEWEST_ROWS:
        return f"{count} rows are too few to extrapolate from."
    if right[-1].all():
        return "All cross-validated answers are right, so more labels cannot show a gain."
    if (right != right[0]).any(0).sum() < FEWEST_CHANGED:
        return "Too few answers changed between half of the rows and all of them."
    return ""


def _constant(answers: np.ndarray, true: np.ndarray, fold: np.ndarray) -> bool:
    """Return whether half of the embeddings (one per fold) or more gave all rows one answer (n,) despite varied labels
    (n,).
    """
    parts = [fold == number for number in np.unique(fold)]
    alike = [len(set(answers[part].tolist())) == 1 for part in parts if len(set(true[part].tolist())) > 1]
    return 2 * sum(alike) >= len(alike) > 0


def _slope(sizes: np.ndarray, accuracies: np.ndarray) -> float:
    """Return the growth of accuracy per unit of log rows, by least squares."""
    centred = np.log(sizes) - np.log(sizes).mean()
    return float(centred @ accuracies / (centred @ centred))
