"""Rule-based tasks on the surface form of a text: question, tense, person, negation, number, mentions, …"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from onboard.making.curriculum.mentions import MENTIONS, mentioned
from onboard.making.curriculum.rows import RowsTask
from onboard.making.curriculum.rules import RULES, is_question
from onboard.making.curriculum.workshop import Workshop, recoded

_OF_A_GENRE: Final = 9000  # texts to apply the rules to
_LONGEST: Final = 60  # tokens of such a text
_SPANS: Final = ((3, 8), (32, 60), (14, 22))  # tokens of short, long and medium texts
_LENGTHS: Final = (("short", "long"), ("brief", "lengthy"), ("short", "long", "medium"), ("small", "large", "middle"))
_MENTION_TASKS: Final = 16
_FINAL: Final = re.compile(r"[\s.?!]+$")


def form(workshop: Workshop) -> list[RowsTask]:
    """Return all tasks of this kind."""
    places = plain_sample(workshop)
    texts = [workshop.store[index] for index in places.tolist()]
    made: list[RowsTask] = []
    for rule in RULES:
        made += by_wording(workshop, f"form-{rule.name}", places, decided(rule.decide, texts), rule.wordings)
    made += _unmarked(workshop, texts)
    made += by_wording(workshop, "form-length", places, _lengths(workshop.store.lengths[places]), _LENGTHS)
    return made + _mentions(workshop, places, texts)


def plain_sample(workshop: Workshop) -> np.ndarray:
    """Return a sample of texts with 3 to 60 tokens, limited per genre, as indices into the store."""
    rng = workshop.random("texts for rules")
    lengths = workshop.store.lengths[workshop.plain]
    fitting = (lengths >= _SPANS[0][0]) & (lengths <= _LONGEST)
    by_genre = [
        rng.permutation(np.flatnonzero(fitting & (workshop.genres == genre)))[:_OF_A_GENRE]
        for genre in np.unique(workshop.genres)
    ]
    sample: np.ndarray = workshop.plain[np.sort(np.concatenate(by_genre))]
    return sample


def by_wording(
    workshop: Workshop, stem: str, places: np.ndarray, classes: np.ndarray, wordings: Sequence[Sequence[str]]
) -> list[RowsTask]:
    """Return one task per wording. A wording with fewer words than classes only uses the first classes."""
    made = []
    for count in sorted({len(words) for words in wordings}):
        some = np.where(classes < count, classes, -1)
        rows = workshop.rows(f"{stem}-{count}", places, None, some, count)
        made += workshop.tasks(stem, [words for words in wordings if len(words) == count], rows)
    return made


def decided(decide: Callable[[str], int], texts: Sequence[str]) -> np.ndarray:
    """Return a rule's class of each text (N,)."""
    return np.fromiter(map(decide, texts), dtype=np.int64, count=len(texts))


def _unmarked(workshop: Workshop, texts: Sequence[str]) -> list[RowsTask]:
    """Return tasks to tell questions from statements without their final punctuation."""
    classes = decided(is_question, texts)
    labelled = np.flatnonzero(classes >= 0)
    stripped = workshop.store.add([_FINAL.sub("", texts[index]) for index in labelled.tolist()])
    wordings = (("question", "statement"), ("asked", "answered"), ("query", "claim"))
    return by_wording(workshop, "form-asks-unmarked", stripped, classes[labelled], wordings)


def _lengths(lengths: np.ndarray) -> np.ndarray:
    """Return 0 for short, 1 for long, 2 for medium, and -1 for lengths between them."""
    classes = np.full(len(lengths), -1)
    for place, (low, high) in enumerate(_SPANS):
        classes[(lengths >= low) & (lengths <= high)] = place
    return classes


def _mentions(workshop: Workshop, places: np.ndarray, texts: Sequence[str]) -> list[RowsTask]:
    """Return tasks on the kind of thing that a text mentions (animals, colors, food …), with 2 to 8 kinds each."""
    classes = decided(mentioned, texts)
    made: list[RowsTask] = []
    common = [place for place in range(len(MENTIONS)) if (classes == place).sum() >= workshop.counts.fewest_rows // 4]
    rng = workshop.random("mentions")
    for number in range(_MENTION_TASKS if len(common) >= 2 else 0):
        kinds = rng.choice(common, min(len(common), int(rng.choice((2, 2, 3, 4, 6, 8)))), replace=False)
        words = [MENTIONS[place].words[number % len(MENTIONS[place].words)] for place in kinds]
        rows = workshop.rows(f"mentions {number}", places, None, recoded(classes, kinds.tolist()), len(kinds))
        made += workshop.tasks("form-mentions", [words], rows)
    return made
