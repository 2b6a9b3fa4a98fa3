"""Results by label, and suggestions for labels that are never or hardly ever predicted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from onboard.domain.label_scores import LabelScore, label_scores, neglect_sentence, neglected
from onboard.domain.label_set import MULTILABEL
from onboard.report.reading import any_label, label_name, mapping, mappings, number, within
from onboard.report.sentences import deciding_metric, fair_split
from onboard.report.submit_again import submit_again

BY_LABEL_HEAD: Final = ["label", "precision", "recall", "F1", "rows", "answered"]
MOST_LABELS: Final = 20  # rows of a table; the worst ones if there are more
_ALIKE: Final = frozenset({"macro_f1", "mcc"})  # metrics in which rare and frequent labels have the same weight


def by_label_rows(metrics: Mapping[str, Any]) -> list[list[str]]:
    """Return the cells of `BY_LABEL_HEAD` for each label with rows or answers; those with the lowest F1 if there are
    many.
    """
    scores = [score for score in label_scores(metrics) if score.f1 is not None]
    if len(scores) > MOST_LABELS:
        scores = sorted(scores, key=lambda score: (score.f1 or 0.0, -score.rows))[:MOST_LABELS]
    shares = ((score, (score.precision, score.recall, score.f1)) for score in scores)
    return [
        [label_name(score.label), *map(_share, of_label), f"{score.rows:,}", f"{score.answers:,}"]
        for score, of_label in shares
    ]


def by_label_notes(metrics: Mapping[str, Any]) -> list[str]:
    """State how many labels the table leaves out."""
    hidden = sum(score.f1 is not None for score in label_scores(metrics)) - MOST_LABELS
    return [f"{hidden:,} labels with a higher F1 are not shown."] if hidden > 0 else []


def neglect(document: Mapping[str, Any]) -> str:
    """State which labels the version never or hardly ever predicts, on the fairest split."""
    return neglect_sentence(_scores(document), label_name)


def neglect_steps(document: Mapping[str, Any]) -> list[str]:
    """Return suggestions for labels without answers, by training method and options."""
    labels = [score.label for score in neglected(_scores(document))]
    if not labels:
        return []
    counts = {
        any_label(entry.get("label")): number(entry.get("count"))
        for entry in mappings(within(document, "dataset", "labels"))
    }
    most = max((count for count in counts.values() if count), default=0.0)
    rare = [label for label in labels if (counts.get(any_label(label)) or 0.0) < most / 2]
    steps = [_label_more(document, rare, counts, most)] if rare else []
    if deciding_metric(document) not in _ALIKE:
        judged = submit_again(document, metric="macro_f1")
        steps.append(f"Use a metric in which every label counts the same: `{judged}`")
    tuning = mapping(document.get("tuning"))
    if not tuning.get("tried") and within(document, "dataset", "kind") != MULTILABEL:
        tuned = submit_again(document, tune_hypernetwork="always")
        steps.append(f"Let the shared hypernetwork learn the task too: `{tuned}`")
    mended = f"Check the labels of the rows of {_named(labels)}, then submit again: `{submit_again(document)}`"
    return steps or [mended]


def _label_more(
    document: Mapping[str, Any], rare: Sequence[Any], counts: Mapping[str, float | None], most: float
) -> str:
    there = ", ".join(f"{counts.get(any_label(label)) or 0:,.0f} of {label_name(label)}" for label in rare[:3])
    return (
        f"Label more rows of {_named(rare)}: {there} were trained on, and {most:,.0f} of the most frequent label. "
        f"Then submit again: `{submit_again(document)}`"
    )


def _named(labels: Sequence[Any]) -> str:
    more = f" and {len(labels) - 3} more" if len(labels) > 3 else ""
    return ", ".join(map(label_name, labels[:3])) + more


def _scores(document: Mapping[str, Any]) -> list[LabelScore]:
    split = fair_split(document)
    return label_scores(mapping(within(document, "metrics", split))) if split else []


def _share(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.0f}%"
