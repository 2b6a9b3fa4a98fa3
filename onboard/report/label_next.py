"""Describe what to label next: texts that the version is unsure about, and the gain from more labels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from onboard.domain.report import decimals_of
from onboard.report.reading import label_name, mapping, mappings, number, text, within

FEWEST_ROWS: Final = 24  # minimum training rows for an extrapolation (`onboard.train.learning_curve`)
MOST_SHARES: Final = 12  # labels shown with their share of the unlabeled texts
FEWEST_HELD_OUT: Final = 16  # minimum held-out rows for a curve (`onboard.train.learning`)


@dataclass(frozen=True, slots=True)
class NextText:
    """A text or a pair to label next, with its current answer."""

    answer: str
    texts: list[str]


@dataclass(frozen=True, slots=True)
class MoreLabels:
    """The gain from more labels, in sentences, and what to label next."""

    sentences: list[str]
    rows: list[NextText]


def more_labels(document: Mapping[str, Any]) -> MoreLabels | None:
    """Return the document's part about more labels and unlabeled texts; None without any."""
    asked = mapping(document.get("label_next"))
    rows = mappings(asked.get("rows"))
    sentences = [*_worth(document), *_shares(asked), *([_sentence(asked, len(rows))] if rows else [])]
    return MoreLabels(sentences, [NextText(_answer(row), _texts(row)) for row in rows]) if sentences else None


def _shares(asked: Mapping[str, Any]) -> list[str]:
    """Describe the current answers to the unlabeled texts, most frequent first."""
    shares = [
        (share, label_name(answered.get("label")))
        for answered in mappings(asked.get("shares"))
        if (share := number(answered.get("share"))) is not None
    ]
    shares.sort(key=lambda share: -share[0])
    shown = ", ".join(f"{label} {100 * share:.0f}%" for share, label in shares[:MOST_SHARES])
    rest = f" and {len(shares) - MOST_SHARES} more labels" if len(shares) > MOST_SHARES else ""
    return [f"Current answers to the unlabeled texts: {shown}{rest}."] if shares else []


def _worth(document: Mapping[str, Any]) -> list[str]:
    """Describe the gain from more labeled rows, with the learning curve."""
    worth = mapping(document.get("more_rows"))
    more = number(worth.get("more"))
    if more is None:
        return list(filter(None, [_too_few(document)]))
    gain, low, high = (number(worth.get(key)) for key in ("gain", "low", "high"))
    reason = text(worth.get("reason")) or "It was not measured."
    said = f"The gain from {more:.0f} more labels is unknown. {reason}"
    if gain is not None and low is not None and high is not None:
        interval = f"95% interval {_points(low)} to {_points(high)}"
        untold = "" if round(100 * low) > 0 else ": the gain is not significant"
        said = (
            f"With {more:.0f} more labels accuracy would change by about {_points(gain)} points ({interval}){untold}."
        )
    curve = [
        f"{100 * accuracy:.0f}% right with {rows:.0f} rows"
        for point in mappings(worth.get("points"))
        if (accuracy := number(point.get("accuracy"))) is not None and (rows := number(point.get("rows"))) is not None
    ]
    what = "Learning curve of the readout alone" if worth.get("of_readout") else "Learning curve"
    return [said, *([f"{what}: {', '.join(curve)}."] if curve else [])]


def _too_few(document: Mapping[str, Any]) -> str:
    """Explain that there are too few training rows for an estimate, if no row was held out."""
    dataset = mapping(document.get("dataset"))
    rows = number(within(dataset, "rows", "train"))
    if document.get("state") != "succeeded" or not rows or dataset.get("kind") != "classification":
        return ""
    if document.get("validation_kind") == "held-out":
        held = number(within(dataset, "rows", "validation"))
        if held is None or held >= FEWEST_HELD_OUT:
            return ""
        return f"The gain from more labels cannot be estimated with fewer than {FEWEST_HELD_OUT} held-out rows."
    counts = [number(label.get("count")) for label in mappings(dataset.get("labels"))]
    if counts and all(count == 1 for count in counts):
        return "The gain from more labels cannot be estimated: every label has one training row."
    if rows >= FEWEST_ROWS:  # the estimate gives the reason if there is no curve
        reason = "" if document.get("validation_kind") else text(document.get("validation_reason"))
        return f"The gain from more labels is unknown. {reason}" if reason else ""
    return f"The gain from more labels cannot be estimated with fewer than {FEWEST_ROWS} training rows."


def _points(share: float) -> str:
    """Return "+5", "0" or "−4": per cent with their sign."""
    points = round(100 * share)
    return f"{points:+d}".replace("-", "−") if points else "0"


def _sentence(asked: Mapping[str, Any], rows: int) -> str:
    considered, read = number(asked.get("considered")), number(asked.get("read"))
    rest = "" if read is None or considered is None or read <= considered else f"; the file has {read:,.0f} rows"
    of = "" if considered is None else f" (of {considered:,.0f} that were looked at{rest})"
    if rows == 1:
        return f"This text is the most useful one to label{of}. Label it, then submit it with the task's other rows."
    return (
        f"These {rows} texts are the most useful ones to label{of}, the least certain first; "
        "near-duplicates are avoided if possible. Label them, then submit them with the task's other rows."
    )


def _answer(row: Mapping[str, Any]) -> str:
    value, spread = number(row.get("value")), number(row.get("spread"))
    if value is not None:
        if not spread:
            return f"{value:g}"
        decimals = decimals_of(spread, 2)  # as many as are significant
        return f"{value:.{decimals}f} ± {spread:.{decimals}f}"
    return " or ".join(
        f"{label_name(answer.get('label'))} {100 * (number(answer.get('probability')) or 0.0):.0f}%"
        for answer in mappings(row.get("answers"))
    )


def _texts(row: Mapping[str, Any]) -> list[str]:
    return [text(row.get(key)) for key in (("text",) if "text" in row else ("text_a", "text_b"))]
