"""What labels mean, in the words of whoever submits them: `--label-description card="lost or stolen bank card"`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from onboard.data.invisible import visible
from onboard.data.problems import preview
from onboard.domain.dataset import Label, label_key, label_text
from onboard.domain.names import did_you_mean
from onboard.errors import InputError

MOST_CHARACTERS: Final = 1_000  # of one description; the encoder reads its first 128 tokens
_WRITE: Final = 'Write it like --label-description card="lost or stolen bank card".'


def descriptions_of(given: Iterable[str], labels: Sequence[Label]) -> dict[str, str]:
    """The description of every label that has one, by `label_key`.

    Args:
        given: LABEL=TEXT each. A label that holds a "=" itself is recognised, as the labels are known.
        labels: of the task; empty for a regression.

    Raises:
        InputError: one is not of this form, is empty or too long, is of a label that the task does not have, or of a
            label that another one describes.
    """
    by_text = {label_text(label): label_key(label) for label in reversed(labels)}
    descriptions: dict[str, str] = {}
    for written in given:
        label, description = _parted(written, by_text)
        key = by_text[label]
        if key in descriptions:
            raise _error(f"The label {preview(label)!r} has two descriptions.", "Give each label one.", label)
        descriptions[key] = description
    return descriptions


def _parted(written: str, by_text: dict[str, str]) -> tuple[str, str]:
    """Label and description. Raises InputError."""
    places = [place for place, letter in enumerate(written) if letter == "="]
    if not places:
        raise _error(f"The label description {preview(written)!r} is not of the form LABEL=TEXT.", _WRITE, written)
    known = [place for place in places if written[:place].strip() in by_text]
    label = written[: (known or places)[0]].strip()
    if not by_text:
        raise _error("A regression has no labels to describe.", "Leave out --label-description.", label)
    if not known:
        names = ", ".join(preview(name) for name in list(by_text)[:10])
        raise _error(
            f"The description is for {preview(label)!r}, which is not a label of the task."
            f"{did_you_mean(label, by_text)}",
            f"Describe one of its labels: {names}{', …' if len(by_text) > 10 else ''}.", label,
        )  # fmt: skip
    description = " ".join(written[known[0] + 1 :].split())
    if not visible(description).strip():
        raise _error(f"The description of the label {preview(label)!r} is empty.", _WRITE, label)
    if len(description) > MOST_CHARACTERS:
        raise _error(
            f"The description of the label {preview(label)!r} has {len(description):,} characters; "
            f"the limit is {MOST_CHARACTERS:,}.",
            "Shorten it.", label,
        )  # fmt: skip
    return label, description


def _error(message: str, remedy: str, label: str) -> InputError:
    return InputError(message, remedy, field="label_description", label=label)
