"""Small sources whose validation rows are marked, and handwritten texts with made-up vectors."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Sequence

import numpy as np

from onboard.data.regression import Buckets
from onboard.domain.dataset import Example
from onboard.making.curriculum import CurriculumCounts, KindCounts, Source

MARK = "zebra"  # in every validation text, and in no other
SUBJECTS = ("music", "kitchen", "money", "football", "travel", "garden", "physics", "church")
PEOPLE = ("John", "Mary", "Robert", "Helen", "Peter", "Susan")
PATTERNS = (
    "Where is the {} of the old {}?", "Did {p} like the {} in Paris?", "Who was the first to see {} there?",
    "What is {} and why does it matter?", "Which {} do you like?", "Why do people need {}?", "How does {} work?",
    "When did the {} begin?", "He was often in the {} with his friend {p}.", "She wrote about {} and said nothing.",
    "In 1990, the school of {} was founded by {p} in Berlin.", "{p} is not happy with the {} in the city.",
    "I think the {} is better than the {}, because it costs less.", "You will see {} tomorrow.",
    "They never played {} in the morning.", '"I love {}," said {p} to the teacher.', "Take the {} and go to the {}.",
    "If the {} fails, we must pay 12 dollars for {}.", "The {} and the {} are large (and very old).",
    "{p} had 20 songs of {}, but the dog was in the car.", "All of the {} may perhaps be a {} at night!",
    "The red house of {} was built by {p}, who lived in Rome.", "Some {} could be cheaper than the {}.",
    "The mother of {p} is in the hospital for {}.", "A man is playing {} on the street.",
)  # fmt: skip
PASSAGES = (
    "The {} was very old and large then. {p} built it in 1990 in the city of {}. Everybody in {} liked it there.",
    "{p} came to the {} in the morning. There was nobody in the old house of {}. So {p} wrote a book on {}.",
    "There is a film on {} and the city. Everybody was often in the old city. The people like {} in the morning.",
)


def _filled() -> list[str]:
    texts = []
    for number, pattern in enumerate(PATTERNS * 16):
        first, second = SUBJECTS[number % 8], SUBJECTS[(number * 3 + number // 25 + 1) % 8]
        text = pattern.replace("{}", first, 1).replace("{}", second).replace("{p}", PEOPLE[(number // 7) % 6])
        texts.append(
            text if number < 25 else f"{text[:-1]} of {PEOPLE[number % 6]} and {SUBJECTS[number // 50]}{text[-1]}"
        )
    for number, (pattern, subject, person) in enumerate(itertools.product(PASSAGES, SUBJECTS, PEOPLE)):
        texts.append(pattern.replace("{}", f"{subject} {number}").replace("{p}", person) + " It was a long day for us.")
    return list(dict.fromkeys(texts))


TEXTS = _filled()


def vector(text: str) -> np.ndarray:
    """Unit sum of a random direction per word (16,)."""
    words = [word for word in text.lower().replace(".", "").replace("?", "").split() if len(word) > 3] or ["."]
    total = sum(
        np.random.default_rng(int.from_bytes(hashlib.sha256(word.encode()).digest()[:4], "big")).standard_normal(16)
        for word in words
    )
    unit: np.ndarray = total / np.linalg.norm(total)
    return unit


def _rows(patterns: Sequence[tuple[str, str | None, str]], mark: str = "") -> tuple[Example, ...]:
    return tuple(
        Example(a.format(subject, person) + mark, None if b is None else b.format(subject, person) + mark, label)
        for subject, person in itertools.product(SUBJECTS, PEOPLE[:3])
        for a, b, label in patterns
    )


def _source(name: str, patterns: Sequence[tuple[str, str | None, str]]) -> Source:
    labels = tuple(sorted({label for _, _, label in patterns}))
    words = tuple(label.replace("_", " ") for label in labels)
    return Source(
        name, "classification", labels, words, None, None, _rows(patterns), _rows(patterns[:1], f" {MARK}")[:5]
    )


def _two(
    a: str, b: str | None, label: str, other_a: str, other_b: str | None, other_label: str
) -> list[tuple[str, str | None, str]]:
    return [(a, b, label), (other_a, other_b, other_label)]


def make_sources() -> list[Source]:
    nli = [
        ("The {0} of {1} is old .", "There is {0} .", "entailment"),
        ("The {0} of {1} is old .", "There is no {0} .", "contradiction"),
        ("The {0} of {1} is old .", "The dog of {1} is red .", "neutral"),
    ]
    scale = tuple(
        Example(f"A man is playing {subject} .", f"{person} likes {subject} .", float(number % 26) / 5)
        for number, (subject, person) in enumerate(itertools.product(SUBJECTS, PEOPLE))
    )
    held = (Example(f"A {MARK} is playing .", f"{MARK} .", 3.0),)
    return [
        _source("cola", _two("{1} likes the {0} .", None, "acceptable", "{1} the likes {0}", None, "unacceptable")),
        _source("mnli", nli),
        _source("mrpc", _two("{1} left {0} .", "{0} was left by {1} .", "paraphrase",
                             "{1} left {0} .", "{1} ran .", "not_paraphrase")),
        _source("qnli", _two("Who is {1} ?", "{1} is the king of the old {0} in the city .", "entailment",
                             "Who is {1} ?", "It is the {0} of the old king of the city .", "not_entailment")),
        _source("qqp", _two("What is {0} ?", "What does {0} mean ?", "duplicate",
                            "What is {0} ?", "Is {1} old ?", "not_duplicate")),
        _source("rte", _two("{1} won the {0} .", "{1} won {0} .", "entailment",
                            "{1} won the {0} .", "{1} lost {0} .", "not_entailment")),
        _source("sst2", _two("a great film on {0} by {1}", None, "positive",
                             "an awful film on {0} by {1} .", None, "negative")),
        Source("stsb", "regression", (), Buckets(0.0, 5.0).words, 0.0, 5.0, scale, held),
    ]  # fmt: skip


COUNTS = CurriculumCounts(
    topic_levels=(3, 6, 8),
    most_rows=200,
    fewest_rows=12,
    **{kind: KindCounts(share=0.1, tasks=60) for kind in
       ("sources", "renamed", "restricted", "merged", "joined", "topics", "form", "style", "pairs")},
)  # fmt: skip
