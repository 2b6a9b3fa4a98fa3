"""Warnings about labels: rare, similar, imbalanced, without rows, or numbers that look like a scale."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import Final

from onboard.data.alike import alike_points, plain_letters
from onboard.data.invisible import code_points
from onboard.data.label_lists import SEPARATORS
from onboard.data.labels import REGRESSION_KINDS, looks_like_scale, number_of
from onboard.data.problems import Finding
from onboard.data.regression import BUCKETS, Buckets
from onboard.domain.dataset import Label, in_canonical_order, label_key, label_text

CROWDED_SHARE: Final = 0.9  # of the rows in one bucket: a few outliers determine the range
FEWEST_KINDS: Final = 5  # distinct values of a scale
_COMMA_NUMBER: Final = re.compile(r"[+-]?\d+(,\d+)?", re.ASCII)
IMBALANCE: Final = 10  # ratio of rows of the most frequent to the rarest label
_NEGATIVE: Final = re.compile(r"-\d+([.,]\d+)?", re.ASCII)
# A point or comma between two digits belongs to a number: 1.0 is not 10, nor J4.51 J45.1.
_PUNCTUATION: Final = re.compile(r"""[\s_;:!?'"]+|(?<!\d)[.,]+|[.,]+(?!\d)|(?<=\w)[-/]+(?=\w)""")
_TYPO_LETTERS: Final = 5  # shorter labels often differ by one letter
_TYPO_SHARE: Final = 0.05  # a misspelled label is rare compared with the right one


def alike_labels(labels: Sequence[Label]) -> list[tuple[Label, Label]]:
    """Return pairs of labels that differ only in case, whitespace, punctuation or invisible characters."""
    letters = [_letters(label) for label in labels]
    pairs = combinations(range(len(labels)), 2)
    return [(labels[one], labels[other]) for one, other in pairs if letters[one] == letters[other]]


def label_findings(labels: Sequence[Label], given: Iterable[Label]) -> list[Finding]:
    """Return all warnings about a label set; `given` are the labels of all training rows."""
    counts = Counter(label_key(label) for label in given)
    checks = (_without_rows, _single, _near_identical, _combined, _imbalance)
    findings = [check(labels, counts) for check in checks] + [_scale(labels)]
    return [finding for finding in findings if finding is not None]


def _without_rows(labels: Sequence[Label], counts: Counter[str]) -> Finding | None:
    empty = [label for label in labels if not counts[label_key(label)]]
    if not empty:
        return None
    message = f"No training row has {_named(empty)}: it can be answered but not learned."
    return Finding("label_without_rows", message, len(empty), "Add rows of these labels.", _examples(empty, counts))


def _single(labels: Sequence[Label], counts: Counter[str]) -> Finding | None:
    single = [label for label in labels if counts[label_key(label)] == 1]
    if not single:
        return None
    message = f"Only one training row for {_named(single)}: it cannot be held out."
    return Finding("single_row_label", message, len(single), "Add rows of these labels.", _examples(single, counts))


def _near_identical(labels: Sequence[Label], counts: Counter[str]) -> Finding | None:
    letters = {label_key(label): _letters(label) for label in labels}
    pairs = [
        (one, other)
        for one, other in combinations(labels, 2)
        if letters[label_key(one)] == letters[label_key(other)]
        or _misspelt(
            letters[label_key(one)], letters[label_key(other)], counts[label_key(one)], counts[label_key(other)]
        )
    ]
    if not pairs:
        return None
    shown = ", ".join(f"{_seen(one)} and {_seen(other)}" for one, other in pairs[:3])
    message = f"Labels that may be the same: {shown}. They are learned as different labels."
    examples = tuple({"labels": list(pair), "rows": [counts[label_key(label)] for label in pair]} for pair in pairs)
    return Finding("near_identical_labels", message, len(pairs), "Use one spelling per label.", examples)


def _combined(labels: Sequence[Label], counts: Counter[str]) -> Finding | None:
    """Warn about labels such as "billing; refund" that combine other labels."""
    names = {label_text(label).strip() for label in labels}
    combined = [
        label for label in labels
        if any(names.issuperset(_parts(label, separator)) for separator in SEPARATORS if separator in label_text(label))
    ]  # fmt: skip
    if not combined:
        return None
    message = f"Labels that look joined from others: {_named(combined)}. They are learned as separate labels."
    remedy = "If a text may have several labels: --kind multilabel"
    return Finding("joined_labels", message, len(combined), remedy, _examples(combined, counts))


def _parts(label: Label, separator: str) -> list[str]:
    return [part.strip() for part in label_text(label).split(separator)]


def _imbalance(labels: Sequence[Label], counts: Counter[str]) -> Finding | None:
    present = sorted((label for label in labels if counts[label_key(label)]), key=lambda name: counts[label_key(name)])
    if len(present) < 2:
        return None
    rare, common = present[0], present[-1]
    most, fewest = counts[label_key(common)], counts[label_key(rare)]
    if most < IMBALANCE * fewest:
        return None
    message = (
        f"{label_text(common)!r} has {most:,} training rows, {label_text(rare)!r} has {fewest:,}: "
        "use macro F1 rather than accuracy."
    )
    remedy = "Add rows of the rare labels, or draw balanced rows with --rows N."
    return Finding("imbalance", message, len(present), remedy, _examples([common, rare], counts))


def _scale(labels: Sequence[Label]) -> Finding | None:
    what, remedy = "numbers with fractions", "If they are a scale: --kind regression"
    if _with_commas(labels):
        what, remedy = (
            "numbers with a decimal comma",
            "If they are a scale, use decimal points (3.5) and: --kind regression",
        )
    elif len(labels) > REGRESSION_KINDS and all(_whole(label) for label in labels):
        what = "integers"
    elif not looks_like_scale(labels):
        return None
    return Finding(
        "numeric_labels", f"The {len(labels)} labels are {what} but are treated as classes.", len(labels), remedy
    )


def _with_commas(labels: Sequence[Label]) -> bool:
    texts = [label_text(label).strip() for label in labels]
    return any("," in text for text in texts) and all(_COMMA_NUMBER.fullmatch(text) for text in texts)


def _whole(label: Label) -> bool:
    number = number_of(label)
    return number is not None and number.is_integer()


def bucket_finding(values: Sequence[float]) -> Finding | None:
    """Warn about a regression with almost all distinct values in one bucket because of a few outliers."""
    if len(set(values)) < FEWEST_KINDS:
        return None
    buckets = Buckets(min(values), max(values))
    nearest = [round((value - buckets.low) / buckets.width) for value in values]
    ((bucket, rows),) = Counter(nearest).most_common(1)
    inside = {value for value, near in zip(values, nearest, strict=True) if near == bucket}
    if rows < CROWDED_SHARE * len(values) or len(inside) < FEWEST_KINDS:
        return None
    message = (
        f"{rows:,} of {len(values):,} training rows share one of the {BUCKETS} buckets between {buckets.low:g} and "
        f"{buckets.high:g}: they can no longer be distinguished."
    )
    return Finding("crowded_bucket", message, rows, "Correct or remove the outliers.")


def _misspelt(first: str, second: str, first_rows: int, second_rows: int) -> bool:
    """Return whether the rarer word is the other one with one typo."""
    if min(len(first), len(second)) < _TYPO_LETTERS or not (first.isalpha() and second.isalpha()):
        return False
    few, many = sorted((first_rows, second_rows))
    return few <= max(1, _TYPO_SHARE * many) and many > few and _one_edit(first, second)


def _letters(label: Label) -> str:
    """Normalize a label: case, whitespace, punctuation, invisible characters; `A+`, `A-` and `A` stay distinct.

    Lookalikes become Latin letters. Numbers are normalized: "1" equals "1.0", and "1,5" equals "1.5".
    """
    text = plain_letters(label_text(label))
    number = number_of(label)
    if number is None and (_COMMA_NUMBER.fullmatch(text) or _NEGATIVE.fullmatch(text)):
        number = number_of(text.replace(",", "."))
    if number is not None:
        return repr(number + 0.0)  # -0.0 is 0.0
    return _PUNCTUATION.sub("", text.casefold())


def _seen(label: Label) -> str:
    """Return the label as JSON, with invisible and lookalike characters made visible."""
    hidden = (*code_points(label_text(label)), *alike_points(label_text(label)))
    return f"{label_key(label)} (with {', '.join(hidden)})" if hidden else label_key(label)


def _one_edit(first: str, second: str) -> bool:
    """Return whether one insertion, deletion, replacement or swap of neighbors converts one word to the other."""
    short, long = sorted((first, second), key=len)
    if len(long) - len(short) > 1:
        return False
    start = next((i for i, (a, b) in enumerate(zip(short, long, strict=False)) if a != b), len(short))
    if len(short) < len(long):
        return short[start:] == long[start + 1 :]
    swapped = short[start : start + 2][::-1] == long[start : start + 2] and short[start + 2 :] == long[start + 2 :]
    return swapped or short[start + 1 :] == long[start + 1 :]


def _examples(labels: Sequence[Label], counts: Counter[str]) -> tuple[dict[str, object], ...]:
    return tuple({"label": label, "rows": counts[label_key(label)]} for label in labels)


def _named(labels: Sequence[Label]) -> str:
    shown = ", ".join(repr(label_text(label)) for label in in_canonical_order(labels)[:5])
    return f"{shown} and {len(labels) - 5} more" if len(labels) > 5 else shown
