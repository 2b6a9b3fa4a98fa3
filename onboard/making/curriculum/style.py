"""Tasks on the genre and style of a text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import combinations
from typing import Final

import numpy as np

from onboard.making.curriculum.form import by_wording, plain_sample
from onboard.making.curriculum.genres import GENRES
from onboard.making.curriculum.rows import RowsTask
from onboard.making.curriculum.workshop import Workshop, recoded

_WORDS: Final = {  # of each genre
    "question": ("question", "forum"),
    "review": ("review", "critic"),
    "news": ("news", "press"),
    "encyclopedia": ("encyclopedia", "reference"),
    "story": ("story", "novel"),
    "caption": ("picture", "scene"),
    "speech": ("talk", "conversation"),
}
_CHOICES: Final = 24
_EASY: Final = (("easy", "hard"), ("simple", "difficult"), ("plain", "complex"))
_FORMAL: Final = (("formal", "casual"), ("official", "friendly"), ("stiff", "relaxed"))
_CASUAL: Final = re.compile(
    r"\b(?:gonna|wanna|gotta|yeah|okay|ok|guys?|stuff|kinda|awesome|lol|hey|wow|cool|cute|kids?|um|uh|crap|dude|hell|"
    r"I'm|don't|can't|it's|isn't|you're|won't|didn't|that's)\b|!",
    re.IGNORECASE,
)
_FORMAL_WORD: Final = re.compile(
    r"\b(?:therefore|thus|moreover|furthermore|hence|pursuant|whereas|regarding|accordingly|consequently|respectively|"
    r"subsequently|constitutes?|comprises?|provisions?|significant|established|approximately|primarily|particular)\b",
    re.IGNORECASE,
)
_WORD: Final = re.compile(r"[A-Za-z]+")


def style(workshop: Workshop) -> list[RowsTask]:
    """Return all tasks of this kind."""
    places = plain_sample(workshop)
    texts = [workshop.store[index] for index in places.tolist()]
    made = _genres(workshop)
    made += by_wording(workshop, "style-easy", places, _difficulty(texts), _EASY)
    formality = np.array([_formality(text) for text in texts])
    return made + by_wording(workshop, "style-formal", places, formality, _FORMAL)


def _genres(workshop: Workshop) -> list[RowsTask]:
    """Return tasks on subsets of the genres, from 2 to all of them."""
    rng = workshop.random("genres")
    common = [place for place in range(len(GENRES)) if (workshop.genres == place).sum() >= workshop.counts.fewest_rows]
    choices = list(combinations(common, 2)) + [
        combination for n in (3, 4, 5, 6, 7) for combination in combinations(common, n)
    ]
    made: list[RowsTask] = []
    for number in rng.permutation(len(choices))[:_CHOICES].tolist():
        choice = choices[number]
        words = [_WORDS[GENRES[place]][number % 2] for place in choice]
        classes = recoded(workshop.genres, choice)
        rows = workshop.rows(f"genres {choice}", workshop.plain, None, classes, len(choice))
        made += workshop.tasks("style-from", [words], rows)
    return made


def _difficulty(texts: Sequence[str]) -> np.ndarray:
    """Return 0 for texts with short words, 1 for long words (the outer fifths), otherwise -1."""
    words = [_WORD.findall(text) for text in texts]
    means = np.array([np.mean([len(word) for word in of_text]) if len(of_text) >= 6 else np.nan for of_text in words])
    if np.isnan(means).all():
        return np.full(len(texts), -1)
    low, high = np.nanquantile(means, (0.2, 0.8))
    return np.select([means <= low, means >= high], [0, 1], -1)


def _formality(text: str) -> int:
    casual, formal = bool(_CASUAL.search(text)), bool(_FORMAL_WORD.search(text))
    if casual == formal:
        return -1
    return int(casual)
