"""The metrics of each kind of task, and how numbers are displayed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

from onboard.domain.names import did_you_mean
from onboard.errors import InputError

# The metrics of each kind of task; by default, the first one decides.
METRICS: Final[Mapping[str, Sequence[str]]] = {
    "classification": ("accuracy", "macro_f1", "mcc", "log_loss"),
    "regression": ("spearman", "pearson", "mse"),
    "multilabel": ("micro_f1", "macro_f1", "lrap", "exact_match"),
}
CALIBRATION_ERROR: Final = "calibration_error"  # additionally measured for classification; it decides nothing
LOWER_IS_BETTER: Final = frozenset({"log_loss", "mse", CALIBRATION_ERROR})
SHARE_METRICS: Final = frozenset({"accuracy", "macro_f1", "micro_f1", "lrap", "exact_match"})  # displayed as per cent
_ROUNDING: Final = 1e-12  # differences of this size come from floating-point arithmetic


def plain_number(value: float, decimals: int = 3) -> str:
    """Format a metric's value with `decimals` decimals; with two significant digits if it would otherwise
    round to 0, unless it differs from 0 by rounding errors only.
    """
    if abs(value) < _ROUNDING:
        value = 0.0
    return f"{value:.2g}" if 0 < abs(value) < 10**-decimals * 5 else f"{value:.{decimals}f}"


def decimals_of(value: float, digits: int) -> int:
    """Return the number of decimals for `digits` significant digits of a number other than 0."""
    return max(0, digits - 1 - math.floor(math.log10(abs(value))))


def require_metric(metric: str, kind: str) -> None:
    """Raise InputError unless tasks of this kind have the metric; empty means the default."""
    if metric and metric not in METRICS[kind]:
        raise InputError(
            "unknown-metric-of-kind",
            metric=metric,
            kind=kind,
            guess=did_you_mean(metric, METRICS[kind]),
            allowed=list(METRICS[kind]),
        )
