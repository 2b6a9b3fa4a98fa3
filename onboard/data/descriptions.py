"""Descriptions of labels by the submitter: `--label-description card="lost or stolen bank card"`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from onboard.data.invisible import visible
from onboard.data.problems import preview
from onboard.domain.dataset import Label, label_key, label_text
from onboard.domain.names import did_you_mean
from onboard.errors import InputError

MOST_CHARACTERS: Final = 1_000  # of one description; the encoder reads its first 128 tokens
_FIELD: Final = "label_description"


def descriptions_of(given: Iterable[str], labels: Sequence[Label]) -> dict[str, str]:
    """Parse descriptions; return them by `label_key`.

    Args:
        given: LABEL=TEXT each. Labels that contain "=" are recognized because the labels are known.
        labels: labels of the task; empty for a regression.

    Raises:
        InputError: a description has another form, is empty or too long, or belongs to an unknown or already described
            label.
    """
    by_text = {label_text(label): label_key(label) for label in reversed(labels)}
    descriptions: dict[str, str] = {}
    for written in given:
        label, description = _parted(written, by_text)
        key = by_text[label]
        if key in descriptions:
            raise InputError("description-repeated", field=_FIELD, label=label, shown=preview(label))
        descriptions[key] = description
    return descriptions


def _parted(written: str, by_text: dict[str, str]) -> tuple[str, str]:
    """Return label and description. Raises InputError."""
    places = [place for place, letter in enumerate(written) if letter == "="]
    if not places:
        raise InputError("description-malformed", field=_FIELD, label=written, shown=preview(written))
    known = [place for place in places if written[:place].strip() in by_text]
    label = written[: (known or places)[0]].strip()
    if not by_text:
        raise InputError("description-of-regression", field=_FIELD, label=label)
    if not known:
        labels = [preview(name) for name in list(by_text)[:10]] + ["…"] * (len(by_text) > 10)
        guess = did_you_mean(label, by_text)
        raise InputError(
            "description-of-unknown-label", field=_FIELD, label=label, shown=preview(label), guess=guess, labels=labels
        )
    description = " ".join(written[known[0] + 1 :].split())
    if not visible(description).strip():
        raise InputError("description-empty", field=_FIELD, label=label, shown=preview(label))
    if len(description) > MOST_CHARACTERS:
        raise InputError(
            "description-too-long", field=_FIELD, label=label, shown=preview(label), characters=len(description),
            limit=MOST_CHARACTERS,
        )  # fmt: skip
    return label, description
