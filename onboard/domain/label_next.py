"""The part of a job's document about the texts to label next. JSON throughout."""

from __future__ import annotations

from typing import TypedDict


class AnswerJson(TypedDict, total=False):
    """A label and its probability."""

    label: str | int | bool | float
    probability: float


class NextRowJson(TypedDict, total=False):
    """A text to label next (its first 1,000 characters), or a pair of them.

    uncertainty: entropy of the probabilities as a share of the maximum. unlike: true for a text that is unlike the
    task's data; such texts come last. answers: the two most likely labels; or, for a regression, `value` with its
    standard deviation `spread`.
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
    """The share of unlabeled texts for which a label is the most likely, and its mean probability."""

    label: str | int | bool | float
    share: float
    mean_probability: float


class LabelNextJson(TypedDict, total=False):
    """The texts of `--unlabelled FILE` to label next, most uncertain first.

    read: rows of the file; known: rows that the dataset already contains with labels; repeated: duplicates of other
    rows; considered: texts that were examined. shares: current answers to these texts, by label; absent for a
    regression.
    """

    rows: list[NextRowJson]
    read: int
    known: int
    repeated: int
    considered: int
    shares: list[ShareJson]
