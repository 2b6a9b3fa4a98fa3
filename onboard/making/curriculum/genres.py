"""The genre of a text, as far as its source or its form indicates it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import numpy as np

from onboard.making.curriculum.source import Source

GENRES: Final = ("question", "review", "news", "encyclopedia", "story", "caption", "speech")

_OF_SOURCE: Final = {
    "sst2": ("review", ""),
    "qqp": ("question", "question"),
    "qnli": ("question", "encyclopedia"),
    "mrpc": ("news", "news"),
    "rte": ("", ""),
    "cola": ("", ""),
    "stsb": ("", ""),
    "mnli": ("", ""),
}
_CAPTION = re.compile(r"(?:A|An|Two|Three|The|Several|Some) [\w ,'-]{2,60}\b(?:is|are) \w+ing\b[^\"]*$")
_SPEECH = re.compile(r"\b(?:uh|um|yeah|uh-huh|hum|i i|you know)\b", re.IGNORECASE)
_PERSONS = re.compile(r"\b(?:i|you|he|she|him|her|his|my|me|your|we)\b", re.IGNORECASE)
_SELF = re.compile(r"\b(?:I|you|my|me|your)\b")
_SPOKEN = re.compile(r"[\"'“‘]")
_SCHOLARLY = re.compile(r"\d{4}|\(")
_CAPITALS = re.compile(r"(?<=[a-z,] )[A-Z][a-z]+")


def genres_of(texts: Sequence[str], sources: Sequence[Source]) -> np.ndarray:
    """Return the index in GENRES of each text (N,), -1 if unknown."""
    by_text: dict[str, int] = {}
    for source in sources:
        for side, genre in zip(("text_a", "text_b"), _OF_SOURCE.get(source.name, ("", "")), strict=True):
            for row in source.train:
                text = getattr(row, side)
                if text is not None and text not in by_text:
                    by_text[text] = GENRES.index(genre) if genre else _by_form(text, of_corpus=False)
    return np.array([by_text[text] if text in by_text else _by_form(text, of_corpus=True) for text in texts])


def _by_form(text: str, *, of_corpus: bool) -> int:
    if _SPEECH.search(text) and not of_corpus:
        return GENRES.index("speech")
    if len(text) < 120 and not of_corpus and _CAPTION.match(text):
        return GENRES.index("caption")
    if not of_corpus:
        return -1
    capitals = len(_CAPITALS.findall(text))
    if len(_PERSONS.findall(text)) >= 2 and not _SCHOLARLY.search(text) and (capitals < 2 or _SPOKEN.match(text)):
        return GENRES.index("story")
    if not _SELF.search(text) and (_SCHOLARLY.search(text) or capitals >= 2):
        return GENRES.index("encyclopedia")
    return -1
