"""What a job's document says of the texts to label next. JSON throughout."""

from __future__ import annotations

from typing import TypedDict


class AnswerJson(TypedDict, total=False):
    """A label and its probability."""

    label: str | int | bool | float
    probability: float


class NextRowJson(TypedDict, total=False):
    """A text that should be labelled next (its first 1,000 characters), or a pair of them.

    uncertainty: entropy of the probabilities as a share of the most that there can be.
    unlike: true of a text that is unlike the task's data; such texts come last.
    answers: the two likeliest labels; or, for a regression, `value` with its standard deviation `spread`.
    """

    text: str
    text_a: str
    text_b: str
    uncertainty: float
    answers: list[AnswerJson]
    value: float
    spread: float
    unlike: bool


class ShareJson(TypedDict):
    """How many of the unlabelled texts a label is the likeliest answer of, as a share, and its mean probability."""

    label: str | int | bool | float
    share: float
    mean_probability: float


class LabelNextJson(TypedDict, total=False):
    """Which texts of `--unlabelled FILE` to label next, the most uncertain first.

    read: rows of the file; known: of them labelled in the dataset already; repeated: of them like another row;
    considered: texts that were looked at.
    shares: what is answered to these now, by label; absent of a regression.
    """

    rows: list[NextRowJson]
    read: int
    known: int
    repeated: int
    considered: int
    shares: list[ShareJson]
