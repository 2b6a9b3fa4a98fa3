"""What to label next, in words: texts of which the version is unsure, and how many labels more are worth."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from onboard.report.reading import any_label, mapping, mappings, number, text


@dataclass(frozen=True, slots=True)
class MoreLabels:
    """What more labels would bring, in sentences, and the texts to label next with what is answered now."""

    sentences: list[str]
    rows: list[list[str]]


def more_labels(document: Mapping[str, Any]) -> MoreLabels | None:
    """What the document says of more labels and of unlabelled texts; None where it says nothing."""
    found = mapping(document.get("label_next"))
    rows = mappings(found.get("rows"))
    sentences = [*_worth(document), *([_sentence(found, len(rows))] if rows else [])]
    return MoreLabels(sentences, [[_answer(each), _text(each)] for each in rows]) if sentences else None


def _worth(document: Mapping[str, Any]) -> list[str]:
    """What more labelled rows would bring, and the learning curve that says so."""
    found = mapping(document.get("more_rows"))
    more = number(found.get("more"))
    if more is None:
        return []
    gain, low, high = (number(found.get(key)) for key in ("gain", "low", "high"))
    reason = text(found.get("reason")) or "It was not measured."
    said = f"What {more:.0f} more labels would bring cannot be told. {reason}"
    if gain is not None and low is not None and high is not None:
        points = f"{100 * gain:+.0f} points of accuracy (95% interval {100 * low:+.0f} to {100 * high:+.0f})"
        said = f"{more:.0f} more labels would bring about {points}."
    curve = [
        f"{100 * accuracy:.0f}% right with {rows:.0f} rows"
        for each in mappings(found.get("points"))
        if (accuracy := number(each.get("accuracy"))) is not None and (rows := number(each.get("rows"))) is not None
    ]
    return [said, *([f"Learning curve: {', '.join(curve)}."] if curve else [])]


def _sentence(found: Mapping[str, Any], rows: int) -> str:
    considered, read = number(found.get("considered")), number(found.get("read"))
    rest = "" if read is None or considered is None or read <= considered else f"; the file has {read:,.0f} rows"
    of = "" if considered is None else f" (of {considered:,.0f} that were looked at{rest})"
    texts = "This text is" if rows == 1 else f"These {rows} texts are"
    return (
        f"{texts} worth a label most{of}: this version is unsure of them, and no two are alike. "
        "Label them, add them to the dataset, and submit it again."
    )


def _answer(each: Mapping[str, Any]) -> str:
    value, spread = number(each.get("value")), number(each.get("spread"))
    if value is not None:
        return f"{value:.3g}" if spread is None else f"{value:.3g} ± {spread:.2g}"
    return " or ".join(
        f"{any_label(answer.get('label'))} {100 * (number(answer.get('probability')) or 0.0):.0f}%"
        for answer in mappings(each.get("answers"))
    )


def _text(each: Mapping[str, Any]) -> str:
    if "text" in each:
        return text(each.get("text"))
    return f"{text(each.get('text_a'))} | {text(each.get('text_b'))}"
