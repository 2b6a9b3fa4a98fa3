"""Compare two versions on the same held-out rows: is the new one better, worse, or is it undecided?

There are two tests, each one-sided at 2.5%, so that both together give at most 5% false alarms:

- answers: McNemar's exact test on the rows with a changed answer;
- losses: Student's t of the mean change in log-loss (squared error for regression). It is more sensitive than answers,
  but cannot overrule them: a version is not worse by its losses if it gives more right answers. (A bootstrap of 20 to
  50 rows is too narrow: it found 3 to 6% of equal versions worse.)

Answers are tested first. The verdict names the test that decided, and is always reported with it.

The rows must not have trained the models that answer them. Cross-validated predictions belong to the models of the
folds and not to a published version. Comparing them with one another is weaker evidence, and must be reported as such
(`onboard.versions.out_of_fold`). Never compare them with answers of a version to its training rows.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from onboard.contract.evaluations import Decisive, PairedComparison, Verdict
from onboard.evaluate.metrics import FloatArray, IntArray, row_log_loss, squared_error
from onboard.statistics.proportions import mcnemar
from onboard.statistics.student import student_interval

ONE_SIDED_LEVEL = 0.025
FEWEST_ROWS_ANSWERS = 6  # five changed answers, all for the worse, still have p = 0.031
FEWEST_ROWS_LOSSES = 20  # below this, the normal distribution is a poor approximation


def compare_classification(true_index: IntArray, earlier: FloatArray, later: FloatArray) -> PairedComparison:
    """Compare probabilities (n, K) of two versions for the same n rows; n may be 0.

    Raises:
        ValueError: the arrays do not match.
    """
    if earlier.shape != later.shape or len(earlier) != len(true_index):
        raise ValueError(f"predictions {earlier.shape} and {later.shape} for {len(true_index)} rows")
    n = len(true_index)
    if not n:
        return PairedComparison(
            verdict="not enough evidence", rows=0, newly_right=0, newly_wrong=0, p_value=1.0, loss="log_loss",
            increase=None, low=None, high=None,
        )  # fmt: skip
    was_right, is_right = earlier.argmax(axis=1) == true_index, later.argmax(axis=1) == true_index
    return compare_right(was_right, is_right, row_log_loss(true_index, later) - row_log_loss(true_index, earlier))


def compare_right(was_right: NDArray[np.bool_], is_right: NDArray[np.bool_], change: FloatArray) -> PairedComparison:
    """Compare versions by the rows (n) that each answered correctly, and the change of log-loss; n may be 0."""
    n = len(change)
    if not n:
        return PairedComparison(
            verdict="not enough evidence", rows=0, newly_right=0, newly_wrong=0, p_value=1.0, loss="log_loss",
            increase=None, low=None, high=None,
        )  # fmt: skip
    newly_right, newly_wrong = int((is_right & ~was_right).sum()), int((was_right & ~is_right).sum())
    low, high = student_interval(change) if n >= FEWEST_ROWS_LOSSES else (None, None)
    verdict, by_answers = _verdict(n, newly_right, newly_wrong, low, high)
    return PairedComparison(
        verdict=verdict,
        rows=n,
        newly_right=newly_right,
        newly_wrong=newly_wrong,
        p_value=min(1.0, 2 * mcnemar(min(newly_right, newly_wrong), max(newly_right, newly_wrong))),
        loss="log_loss",
        increase=float(change.mean()),
        low=low,
        high=high,
        decided_by=_decisive(verdict, "answers" if by_answers else "log_loss"),
    )


def compare_regression(true: FloatArray, earlier: FloatArray, later: FloatArray) -> PairedComparison:
    """Compare predicted numbers (n,) of two versions for the same n rows; n may be 0.

    Raises:
        ValueError: the arrays do not match.
    """
    if not true.shape == earlier.shape == later.shape:
        raise ValueError(f"predictions {earlier.shape} and {later.shape} for {len(true)} rows")
    if not len(true):
        return PairedComparison(
            verdict="not enough evidence", rows=0, newly_right=None, newly_wrong=None, p_value=None,
            loss="squared_error", increase=None, low=None, high=None,
        )  # fmt: skip
    change = squared_error(true, later) - squared_error(true, earlier)  # (n,)
    low, high = student_interval(change) if len(true) >= FEWEST_ROWS_LOSSES else (None, None)
    verdict: Verdict = "not enough evidence" if low is None else _verdict(len(true), 0, 0, low, high)[0]
    return PairedComparison(
        verdict=verdict, rows=len(true), newly_right=None, newly_wrong=None, p_value=None, loss="squared_error",
        increase=float(change.mean()), low=low, high=high, decided_by=_decisive(verdict, "squared_error"),
    )  # fmt: skip


def _verdict(n: int, newly_right: int, newly_wrong: int, low: float | None, high: float | None) -> tuple[Verdict, bool]:
    """Return the verdict, and whether the answers decided it."""
    if n < FEWEST_ROWS_ANSWERS:
        return "not enough evidence", False
    if mcnemar(newly_right, newly_wrong) <= ONE_SIDED_LEVEL:
        return "worse", True
    if mcnemar(newly_wrong, newly_right) <= ONE_SIDED_LEVEL:
        return "better", True
    if low is not None and low > 0 and newly_wrong >= newly_right:
        return "worse", False
    if high is not None and high < 0 and newly_right >= newly_wrong:
        return "better", False
    return "no significant difference", False


def _decisive(verdict: Verdict, by: Decisive) -> Decisive | None:
    return by if verdict in ("better", "worse") else None
