"""The verbalizer: lower-case words for every label, the target of the text-to-text form."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Final

from onboard.data.invisible import visible
from onboard.data.limits import MAX_EXAMPLES
from onboard.data.problems import Finding, preview
from onboard.domain.dataset import Label, in_canonical_order, label_key, label_text
from onboard.errors import InputError

MAX_WORDS: Final = 12

_JOINTS: Final = re.compile(r"(?<=[^\W\d_])[-/:|.,;\\]+(?=\w)|(?<=\w)[-/:|.,;\\]+(?=[^\W\d_])")
_SPARE_STEMS: Final = ("label", "class", "answer", "choice")

TokenIds = Callable[[str], Sequence[int]]
Verbaliser = Callable[[Sequence[Label]], tuple[str, ...]]
"""Returns distinct words for distinct labels, in order: `verbalise` with one base's tokenizer."""


def words_of(label: Label) -> str:
    """Return the words of a label: `not_entailment` → "not entailment", `CardLost` → "card lost", True → "true", 3 →
    "3".

    Labels without letters or digits (emoji, "+") are unchanged; sentences are cut after 12 words.
    """
    return " ".join(_all_words_of(label).split()[:MAX_WORDS])


def verbalise(
    labels: Sequence[Label], token_ids: TokenIds | None = None, unknown_id: int | None = None
) -> tuple[str, ...]:
    """Return distinct words for distinct labels, in order; they do not depend on that order.

    Labels with the same words are numbered ("card lost", "card lost 2"). With a tokenizer, labels whose tokens are
    empty, equal another label's or contain the unknown token become "label 1", "label 2", … instead.

    Args:
        labels: distinct labels.
        token_ids: returns the tokens of a word, as the decoder learns them.
        unknown_id: the tokenizer's id of unknown tokens.

    Raises:
        InputError: the tokenizer cannot distinguish the labels, even with such names.
    """
    words = _distinct(in_canonical_order(labels))
    if token_ids is not None:
        words = _tellable(words, token_ids, unknown_id)
    return tuple(words[label_key(label)] for label in labels)


def says_something(label: Label, word: str) -> bool:
    """Return whether a label's words may tell what it means: codes, numbers and words unknown to the base do not.

    Args:
        word: the base's words for it, from `verbalise`.
    """
    own = words_of(label)
    return word.startswith(own) and any(len(part) > 1 and part.isalpha() for part in own.split())


def silent_labels(labels: Sequence[Label], words: Sequence[str], described: Collection[str] = ()) -> list[Label]:
    """Return the labels that have no description and whose words say nothing (`says_something`).

    Args:
        words: the base's words for the labels, from `verbalise`.
        described: keys of labels with a description.
    """
    return [
        label
        for label, word in zip(labels, words, strict=True)
        if label_key(label) not in described and not says_something(label, word)
    ]


def words_finding(labels: Sequence[Label], words: Sequence[str]) -> Finding | None:
    """Warn about labels with words other than their own: cut, numbered, or unknown to the base's vocabulary."""
    other = [(label, word) for label, word in zip(labels, words, strict=True) if word != _all_words_of(label)]
    if not other:
        return None
    label, word = other[0]
    message = (
        f"{len(other):,} of {len(labels):,} labels cannot use their own words, first {preview(label_text(label))!r}: "
        f"for the base it becomes {word!r}, unless the start defines other words. Answers use the submitted label."
    )
    shown = tuple({"label": label, "words": word} for label, word in other[:MAX_EXAMPLES])
    return Finding(
        "label_words", message, len(other), "Short labels in plain words are learned from fewer rows.", shown
    )


def _all_words_of(label: Label) -> str:
    if isinstance(label, float) and label.is_integer():
        return str(int(label))
    text = label_text(label).strip()
    if isinstance(label, str) and any(character.isalnum() for character in text):
        text = _JOINTS.sub(" ", _uncamelled(visible(text).replace("_", " "))).lower()
    return " ".join(text.split())


def _uncamelled(text: str) -> str:
    """Insert a space before every capital that starts a word: `CardLost`, `HTTPError`, `top10List`, but not `3D`."""
    parts = []
    for before, letter, after in zip(" " + text, text, text[1:] + " ", strict=False):
        starts = letter.isupper() and (before.islower() or (before.isalnum() and after.islower()))
        parts.append(f" {letter}" if starts else letter)
    return "".join(parts)


def _distinct(labels: Sequence[Label]) -> dict[str, str]:
    """Return words by label key. Labels that equal their words come first, so that they keep them."""
    words: dict[str, str] = {}
    taken: set[str] = set()
    for label in sorted(labels, key=lambda candidate: words_of(candidate) != label_text(candidate)):
        stem = words_of(label)
        numbered = (f"{stem} {number}" for number in itertools.count(2))
        words[label_key(label)] = next(word for word in itertools.chain([stem], numbered) if word not in taken)
        taken.add(words[label_key(label)])
    return {label_key(label): words[label_key(label)] for label in labels}


def _tellable(words: dict[str, str], token_ids: TokenIds, unknown_id: int | None) -> dict[str, str]:
    tokens = {key: tuple(token_ids(word)) for key, word in words.items()}
    shared = Counter(tokens.values())
    fine = {key for key, ids in tokens.items() if shared[ids] == 1 and _known(ids, unknown_id)}
    taken = {tokens[key] for key in fine}
    distinct: dict[str, str] = {}
    for position, key in enumerate(words, start=1):
        if key in fine:
            distinct[key] = words[key]
            continue
        for spare in _spares(position):
            ids = tuple(token_ids(spare))
            if ids not in taken and _known(ids, unknown_id):
                distinct[key] = spare
                taken.add(ids)
                break
        else:
            raise InputError("label-words-alike", labels=list(words), words=sorted(words))
    return distinct


def _spares(position: int) -> Iterator[str]:
    """Yield names for the label at a position (from 1): "label 1", …; for a vocabulary without digits "label b", …."""
    yield from (f"{stem} {position}" for stem in _SPARE_STEMS)
    letters = " ".join(chr(ord("a") + int(digit)) for digit in str(position))
    yield from (f"{stem} {letters}" for stem in _SPARE_STEMS)


def _known(ids: Sequence[int], unknown_id: int | None) -> bool:
    return bool(ids) and unknown_id not in ids
