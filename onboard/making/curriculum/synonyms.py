"""Synonyms of label words.

The teacher's neighbors of a word include its opposites (positive, negative), so common label words have a list.
"""

from __future__ import annotations

from typing import Final

_SYNONYMS: Final = {
    "positive": ("good", "favorable", "liked", "great", "praise", "happy", "enjoyed", "approve"),
    "negative": ("bad", "unfavorable", "disliked", "poor", "criticism", "unhappy", "hated", "reject"),
    "entailment": ("true", "follows", "yes", "implied", "correct", "consistent", "agrees"),
    "not entailment": ("false", "unsupported", "no", "open", "incorrect", "missing", "differs"),
    "contradiction": ("false", "conflict", "no", "impossible", "wrong", "opposite", "denied"),
    "neutral": ("unknown", "open", "maybe", "possible", "unclear", "uncertain", "undecided"),
    "duplicate": ("same", "equal", "repeated", "identical", "yes", "matching", "equivalent"),
    "not duplicate": ("different", "other", "new", "distinct", "no", "separate", "unlike"),
    "paraphrase": ("same", "equal", "alike", "equivalent", "yes", "matching", "restated"),
    "not paraphrase": ("different", "other", "changed", "distinct", "no", "separate", "unlike"),
    "acceptable": ("correct", "fine", "good", "natural", "right", "valid", "fluent"),
    "unacceptable": ("wrong", "broken", "bad", "odd", "incorrect", "faulty", "garbled"),
}


def synonyms(word: str) -> tuple[str, ...]:
    """Return the synonyms of a common label word, best first. The lists of one task's labels correspond by position."""
    return _SYNONYMS.get(word, ())
