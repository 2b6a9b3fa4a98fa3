"""Verdicts about a finished version: whether it is weak, and whether `latest` may move to it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from onboard.contract.evaluations import PairedComparison
from onboard.domain.report import LOWER_IS_BETTER, METRICS, SHARE_METRICS, plain_number
from onboard.evaluate.intervals import Metric
from onboard.evaluate.metrics import CONSTANT_PREDICTIONS


@dataclass(frozen=True, slots=True)
class Weakness:
    """Whether a version is weak, and the numbers behind it.

    `judged` is False if no rows can show it; then it is not weak.
    """

    weak: bool
    judged: bool
    reason: str


def weakness(measured: Mapping[str, Metric] | None, trivial: Mapping[str, Metric] | None, deciding: str) -> Weakness:
    """Decide whether a version is weak: its deciding metric's 95% interval is not entirely beyond the trivial baseline.

    For classification, this also applies to macro-F1, where a label that is never answered counts as much as the most
    frequent one.

    That is: for a metric where more is better, weak if and only if `low` ≤ the value of always giving the most frequent
    training label (or the mean, for regression) on the same rows; for log_loss and mse, `high` ≥ that value. An
    undefined metric is weak if all predictions are the same. The same rule applies to cross-validated estimates.
    Without any estimate, or on rows that cannot tell (a single one, or all with the same label), nothing is judged,
    because missing evidence does not make a version weak.

    Args:
        measured: the version's metrics on test rows, or else on validation rows; None without either.
        trivial: the baseline `majority` or `mean` on the same rows.
        deciding: name of the deciding metric (`headline_metric`).
    """
    if not measured or not trivial:
        return Weakness(False, False, "No rows were held out, so it was not compared with the most frequent label.")
    verdict = _weakness_by(deciding, measured, trivial)
    if not verdict.judged or verdict.weak or "macro_f1" not in measured.keys() & trivial.keys():
        return verdict
    by_label = _weakness_by("macro_f1", measured, trivial)
    return by_label if by_label.weak else verdict


def _weakness_by(deciding: str, measured: Mapping[str, Metric], trivial: Mapping[str, Metric]) -> Weakness:
    metric, bar = measured[deciding], trivial[deciding].value
    if metric.low is None or metric.high is None:
        alike = metric.note == CONSTANT_PREDICTIONS
        return Weakness(alike, alike, f"Its {deciding} of {metric.value:.3g} has no interval: {metric.note}.")
    if metric.n == 1:
        return Weakness(False, False, "A single held-out row is not enough to judge it.")
    beyond = metric.high < bar if deciding in LOWER_IS_BETTER else metric.low > bar
    shown: Callable[[float], str] = "{:.1%}".format if deciding in SHARE_METRICS else plain_number
    trivially = "the mean" if deciding in METRICS["regression"] else "the most frequent label"
    trivially = "the most frequent set of labels" if METRICS["multilabel"][0] in measured else trivially
    return Weakness(
        weak=not beyond,
        judged=True,
        reason=f"Its {deciding} of {shown(metric.value)} (95%: {shown(metric.low)} to {shown(metric.high)}, "
        f"{metric.n} rows) is {'better than' if beyond else 'not significantly better than'} "
        f"the {shown(bar)} of always giving {trivially}.",
    )


@dataclass(frozen=True, slots=True)
class Replacement:
    """Whether `latest` may move to the new version, and the reason in one sentence."""

    allowed: bool
    reason: str


def may_replace(
    comparison: PairedComparison | None,
    *,
    weak: bool,
    predecessor_weak: bool,
    predecessor_unmeasured: bool = False,
    from_labels_alone: bool = False,
) -> Replacement:
    """Decide whether `latest` may move from its current version to a new one.

    It moves unless the new version is significantly worse on shared held-out rows. If those are missing or too few
    (nothing held out, cross-validated, or all known to the predecessor) it moves, because a user who submits a task
    again wants the new rows to count. There are two exceptions: a weak version does not replace one that is not weak,
    unless that one is unmeasured; and a version made from labels alone does not replace one that was made from rows.

    Args:
        comparison: new version against the current one on rows that neither was trained on; None without any.
        predecessor_unmeasured: no rows show how good the current version is.
        from_labels_alone: the new version was made without labeled rows, the current one with rows.
    """
    if comparison is not None and comparison.verdict != "not enough evidence":
        reason = comparison.sentence("It", "the current version", "shared held-out rows")
        return Replacement(comparison.verdict != "worse", reason)
    if from_labels_alone:
        return Replacement(
            False, "It was made from its labels alone, the current version from labeled rows, and too few shared "
            "held-out rows speak for it.",
        )  # fmt: skip
    if predecessor_unmeasured:
        return Replacement(True, "The current version is unmeasured, and there are too few held-out rows to compare.")
    if weak and not predecessor_weak:
        return Replacement(
            False, "It is weak, the current version is not, and there are too few shared held-out rows in its favor."
        )
    return Replacement(True, "There are too few shared held-out rows to compare it with the current version.")
