"""Pairs of texts: similar or not, same topic, same form, consecutive, contained in a passage, or edited."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from onboard.making.curriculum import edits
from onboard.making.curriculum.form import decided, plain_sample
from onboard.making.curriculum.genres import GENRES
from onboard.making.curriculum.neighbours import Neighbours, dense_sample, nearest
from onboard.making.curriculum.rows import RowsTask
from onboard.making.curriculum.rules import RULES
from onboard.making.curriculum.workshop import Workshop

_SAMPLE: Final = 20000
_LONGEST: Final = 50  # tokens of one text of a pair
_PASSAGE: Final = 30  # tokens of a text that may be a passage
_SAME: Final = (
    ("different", "similar"), ("unlike", "alike"), ("unrelated", "related"), ("no", "yes"), ("far", "close"),
    ("other", "same"), ("distinct", "matching"),
)  # fmt: skip
_DENIED: Final = (("denied", "kept"), ("opposite", "same"), ("conflict", "agreement"), ("false", "true"))
_IMPLIED: Final = (
    ("contradiction", "neutral", "entailment"),
    ("false", "maybe", "true"),
    ("conflict", "unknown", "follows"),
)
_EDITS: Final = (("order", "number", "negation", "cut"), ("moved", "counted", "denied", "shorter"))
_SENTENCE_END: Final = re.compile(r"(?<=[a-z0-9\")][.!?])\s+(?=[A-Z\"“])")
_EDITED: Final = 30000  # sentences to edit


def pairs(workshop: Workshop) -> list[RowsTask]:
    """Return all tasks of this kind."""
    near = _neighbours(workshop)
    made: list[RowsTask] = []
    if near is not None:
        made += _similar(workshop, near)
        made += _edited(workshop, near)
    made += _of_passages(workshop)
    return made + _same_form(workshop)


def _neighbours(workshop: Workshop) -> Neighbours | None:
    lengths = workshop.store.lengths[workshop.plain]
    fitting = np.flatnonzero((lengths >= 4) & (lengths <= _LONGEST))
    sample = dense_sample(workshop.vectors, fitting, _SAMPLE, workshop.random("neighbours"))
    return nearest(workshop.vectors, sample, 8) if len(sample) >= 2 else None


def _similar(workshop: Workshop, near: Neighbours) -> list[RowsTask]:
    """Return similarity tasks by thresholds of the cosine, with random and with near-miss negatives."""
    rng = workshop.random("dissimilar")
    strangers = _shuffled_against(workshop, near, rng)
    ways: list[tuple[str, Sequence[tuple[float, float]], Sequence[Sequence[str]]]] = [
        ("50", ((-1, 0.1), (0.5, 0.999)), _SAME[:4]),
        ("70", ((-1, 0.2), (0.7, 0.999)), (_SAME[0], *_SAME[4:6])),
        ("close", ((0.3, 0.5), (0.75, 0.999)), (_SAME[0], *_SAME[5:])),
        ("equal", ((0.4, 0.65), (0.85, 0.999)), (("different", "same"), ("unequal", "equal"), ("no", "yes"))),
        ("graded", ((-1, 0.1), (0.4, 0.55), (0.8, 0.999)), (
            ("different", "related", "same"), ("low", "medium", "high"), ("far", "near", "equal"))),
    ]  # fmt: skip
    made = []
    for way, bands, wordings in ways:
        parts = []
        for label, (low, high) in enumerate(bands):
            source = strangers if low < 0 else near
            within = source.between(low, high)
            parts.append((source.left[within], source.right[within], np.full(len(within), label)))
        left, right, classes = (np.concatenate(column) for column in zip(*parts, strict=True))
        rows = workshop.rows(f"similar {way}", workshop.plain[left], workshop.plain[right], classes, len(bands))
        made += workshop.tasks(f"pairs-similar-{way}", wordings, rows)
    return made


def _shuffled_against(workshop: Workshop, near: Neighbours, rng: np.random.Generator) -> Neighbours:
    left = near.left[:: max(1, len(near.left) // 40000)]
    right = rng.permutation(left)
    cosine = (workshop.vectors[left].astype(np.float32) * workshop.vectors[right]).sum(1)
    return Neighbours(left, right, cosine)


def _same_form(workshop: Workshop) -> list[RowsTask]:
    """Return tasks on whether both texts have the same form or genre."""
    places = plain_sample(workshop)
    texts = [workshop.store[index] for index in places.tolist()]
    of_rule = {rule.name: rule for rule in RULES}
    made: list[RowsTask] = []
    for name in ("asks", "tense", "person", "negation", "number", "quotation"):
        classes = decided(of_rule[name].decide, texts)
        wordings = (("different", "same"), ("unlike", "alike"))
        made += _paired(workshop, f"pairs-same-{name}", places, classes, wordings)
    genres = np.full(len(workshop.store), -1)
    genres[workshop.plain] = workshop.genres
    wordings = (("different", "same"), ("mixed", "equal"))
    return made + _paired(workshop, "pairs-same-genre", places, genres[places], wordings)


def _paired(
    workshop: Workshop, stem: str, places: np.ndarray, classes: np.ndarray, wordings: Sequence[Sequence[str]]
) -> list[RowsTask]:
    """Return pairs of texts with a class; half of the pairs have the same class."""
    rng = workshop.random(stem)
    labels_present = np.unique(classes[classes >= 0])
    if len(labels_present) < 2:
        return []
    members = [np.flatnonzero(classes == label) for label in labels_present]
    most = workshop.counts.most_rows // 2
    left_class = rng.integers(len(members), size=2 * most)
    right_class = (
        left_class + np.where(np.arange(2 * most) < most, 0, rng.integers(1, len(members), size=2 * most))
    ) % len(members)
    left = np.array([members[label][rng.integers(len(members[label]))] for label in left_class])
    right = np.array([members[label][rng.integers(len(members[label]))] for label in right_class])
    apart = left != right
    labels = np.where(left_class == right_class, 1, 0)
    rows = workshop.rows(stem, places[left[apart]], places[right[apart]], labels[apart], 2)
    return workshop.tasks(stem, wordings, rows)


def _of_passages(workshop: Workshop) -> list[RowsTask]:
    """Return tasks on passages: the second sentence follows the first, the passage contains a sentence or word."""
    rng = workshop.random("passages")
    long = workshop.plain[(workshop.store.lengths[workshop.plain] > _PASSAGE)]
    split = [_SENTENCE_END.split(workshop.store[index]) for index in rng.permutation(long)[:_SAMPLE].tolist()]
    split = [
        sentences
        for sentences in split
        if len(sentences) >= 3 and all(20 <= len(sentence) <= 250 for sentence in sentences[:3])
    ]
    split = _unrepeated(split)
    if len(split) < 4:
        return []
    stranger = np.roll(np.arange(len(split)), 1)
    first, second, third = ([sentences[place] for sentences in split] for place in range(3))
    opening = [f"{one} {two}" for one, two in zip(first, second, strict=True)]
    with_third = [f"{one} {three}" for one, three in zip(opening, third, strict=True)]
    foreign_second, foreign_third = ([column[index] for index in stranger] for column in (second, third))
    made = _two_sided(workshop, "pairs-follows", first, second, foreign_second,
                      (("unrelated", "follows"), ("break", "continues"), ("other", "next"), ("no", "yes")))  # fmt: skip
    made += _two_sided(workshop, "pairs-continues", opening, third, foreign_third,
                       (("unrelated", "follows"), ("wrong", "right")))  # fmt: skip
    made += _two_sided(workshop, "pairs-holds", with_third, second, foreign_second,
                       (("absent", "present"), ("missing", "contained"), ("no", "yes")))  # fmt: skip
    made += _two_sided(workshop, "pairs-held-by", second, with_third, [with_third[index] for index in stranger],
                       (("absent", "present"), ("elsewhere", "inside"), ("no", "yes")))  # fmt: skip
    return made + _words_held(workshop, opening, rng)


def _unrepeated(split: Sequence[list[str]]) -> list[list[str]]:
    """Return passages without sentences of earlier ones, so that a wrong sentence never belongs to the passage."""
    fresh, earlier = [], set[str]()
    for sentences in split:
        if earlier.isdisjoint(sentences[:3]):
            fresh.append(sentences)
            earlier.update(sentences[:3])
    return fresh


def _two_sided(
    workshop: Workshop,
    stem: str,
    left: Sequence[str],
    right: Sequence[str],
    wrong: Sequence[str],
    wordings: Sequence[Sequence[str]],
) -> list[RowsTask]:
    """Return tasks with class 0 for a wrong partner of the left text, and class 1 for the right one."""
    lefts, rights = workshop.store.add(left), workshop.store.add([*right, *wrong])
    lefts, classes = np.tile(lefts, 2), np.repeat([1, 0], len(left))
    tokens = workshop.store.lengths[lefts] + workshop.store.lengths[rights] + workshop.store.separator_length + 1
    classes[tokens > workshop.store.limit] = -1  # the deciding part may be cut off
    return workshop.tasks(stem, wordings, workshop.rows(stem, lefts, rights, classes, 2))


def _words_held(workshop: Workshop, texts: Sequence[str], rng: np.random.Generator) -> list[RowsTask]:
    vocabulary = set(workshop.wording.words)
    inside = [[word for word in re.findall(r"[a-z]{4,}", text) if word in vocabulary] for text in texts]
    long_enough = [index for index, words in enumerate(inside) if len(words) >= 3]
    if len(long_enough) < 2:
        return []
    right = [inside[index][int(rng.integers(len(inside[index])))] for index in long_enough]
    wrong = []
    for index in long_enough:
        foreign_words = inside[long_enough[int(rng.integers(len(long_enough)))]]
        wrong.append(next((word for word in foreign_words if word not in texts[index]), workshop.wording.words[0]))
    wordings = (("absent", "present"), ("missing", "mentioned"), ("no", "yes"))
    return _two_sided(workshop, "pairs-word", [texts[index] for index in long_enough], right, wrong, wordings)


def _edited(workshop: Workshop, near: Neighbours) -> list[RowsTask]:
    """Return pairs of a sentence and an edited copy that keeps, changes or negates its meaning."""
    rng = workshop.random("edits")
    statement = np.isin(
        workshop.genres, [GENRES.index(genre) for genre in ("news", "encyclopedia", "caption", "story")]
    )
    lengths = workshop.store.lengths[workshop.plain]
    fitting = workshop.plain[(statement | (workshop.genres < 0)) & (lengths >= 7) & (lengths <= _LONGEST)]
    texts = [workshop.store[index] for index in rng.permutation(fitting)[:_EDITED].tolist()]
    texts = [text for text in texts if text.rstrip().endswith(".")]
    harmless = _tried(texts, lambda text: edits.harmless(text, rng))
    swapped = _disguised(_tried(texts, lambda text: edits.swapped(text, rng)), rng)
    renumbered = _disguised(_tried(texts, lambda text: edits.renumbered(text, rng)), rng)
    numbered = [pair for pair in harmless if re.search(r"\d", pair[0])]
    denied = _disguised(_tried(texts, edits.denied) + _tried(texts, edits.affirmed), rng)
    parts = _tried(texts, edits.part)
    parts += [(no, cut) for yes, no in denied if (cut := edits.part(no)) is not None and " not " in cut]
    topical = near.between(0.4, 0.6)
    related = [(workshop.store[workshop.plain[near.left[pair]]], workshop.store[workshop.plain[near.right[pair]]])
               for pair in rng.permutation(topical)[:12000].tolist()]  # fmt: skip
    related = [pair for pair in related if all(text.endswith(".") for text in pair)]
    same = (("different", "same"), ("changed", "equal"), ("altered", "kept"), ("no", "yes"))
    made = _labelled(workshop, "pairs-order", (swapped, harmless), same)
    made += _labelled(workshop, "pairs-number", (renumbered, numbered), same[:3])
    made += _labelled(workshop, "pairs-changed", (swapped[::2] + renumbered[::2] + denied[::2], harmless), same)
    made += _labelled(workshop, "pairs-denied", (denied, harmless + parts), _DENIED)
    implied = (denied + renumbered[::2], related, parts + harmless[::2])
    made += _labelled(workshop, "pairs-implied", implied, _IMPLIED)
    return made + _labelled(workshop, "pairs-edit", (swapped, renumbered, denied, parts), _EDITS)


def _tried(texts: Sequence[str], edit: Callable[[str], str | None]) -> list[tuple[str, str]]:
    return [(text, changed) for text in texts if (changed := edit(text)) is not None]


def _disguised(changed: Sequence[tuple[str, str]], rng: np.random.Generator) -> list[tuple[str, str]]:
    """Apply a harmless edit to half of the changed sentences, so that such edits are not informative."""
    return [
        (text, (edits.harmless(changed_text, rng) or changed_text) if place % 2 else changed_text)
        for place, (text, changed_text) in enumerate(changed)
    ]


def _labelled(
    workshop: Workshop, stem: str, groups: Sequence[Sequence[tuple[str, str]]], wordings: Sequence[Sequence[str]]
) -> list[RowsTask]:
    left = workshop.store.add([pair[0] for group in groups for pair in group])
    right = workshop.store.add([pair[1] for group in groups for pair in group])
    classes = np.repeat(np.arange(len(groups)), [len(group) for group in groups])
    return workshop.tasks(stem, wordings, workshop.rows(stem, left, right, classes, len(groups)))
