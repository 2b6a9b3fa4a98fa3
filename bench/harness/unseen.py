"""Kinds of tasks that the base's curriculum has nothing like, made from texts of the source tasks.

Only rows of the sources' validation splits are used: the base was not trained on them, and the test splits stay free to
measure what the sources lose. Each row's label follows from the rows themselves, by a rule that can be read here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

import numpy as np

from bench.harness import source_folders
from onboard.domain.dataset import Dataset, Example, in_canonical_order, in_canonical_rows

Rows = Mapping[str, list[Example]]  # by source
Rule = Callable[[Rows, np.random.Generator], Iterator[Example]]

SEEN: Final = ("opinion",)  # not unseen at all: where an embedding alone is enough, and tuning should stay away
_POOL: Final = 60  # rows of a label that draws are made of, at most; the others test
_NUMBER: Final = re.compile(r"\d")
_LONGER: Final = 1.4  # so many times as many words
_LONG_WORDS: Final = (12, 20)  # at most, at least
_ASKED: Final = {
    "number": re.compile(r"^(?:how (?:many|much|long|old|far|tall)|what (?:percent|percentage|number|age))\b", re.I),
    "person": re.compile(r"^(?:who|whose|whom|what (?:person|man|woman|king|president|actor|author|name))\b", re.I),
    "place": re.compile(r"^(?:where|(?:in )?(?:what|which) (?:city|country|state|region|place|area))\b", re.I),
    "time": re.compile(r"^(?:when|(?:in )?(?:what|which) (?:year|date|day|month|decade|century))\b", re.I),
    "reason": re.compile(r"^(?:why|what (?:causes?|caused|makes|made|reason))\b", re.I),
}


def _origin(rows: Rows, _: np.random.Generator) -> Iterator[Example]:
    """Which source a text is from."""
    for source, label in (("cola", "example"), ("sst2", "review"), ("mnli", "speech"), ("stsb", "headline")):
        yield from (Example(row.text_a, None, label) for row in rows[source])


def _pair_origin(rows: Rows, _: np.random.Generator) -> Iterator[Example]:
    """Which source a pair is from."""
    for source, label in (("mrpc", "news"), ("qqp", "forum"), ("mnli", "speech"), ("qnli", "encyclopedia")):
        yield from (Example(row.text_a, row.text_b, label) for row in rows[source])


def _answer(rows: Rows, _: np.random.Generator) -> Iterator[Example]:
    """The form of a question."""
    questions = [row.text_a for row in rows["qnli"]]
    questions += [text for row in rows["qqp"] for text in (row.text_a, row.text_b or "")]
    for question in dict.fromkeys(questions):
        answers = [label for label, pattern in _ASKED.items() if pattern.search(question)]
        if len(answers) == 1:
            yield Example(question, None, answers[0])


def _longer(rows: Rows, _: np.random.Generator) -> Iterator[Example]:
    """Which text of a pair has more words."""
    for row in (*rows["qqp"], *rows["mnli"]):
        first, second = len(row.text_a.split()), len((row.text_b or "").split())
        if max(first, second) >= _LONGER * min(first, second):
            yield Example(row.text_a, row.text_b, "first" if first > second else "second")


def _asked(rows: Rows, random: np.random.Generator) -> Iterator[Example]:
    """Where the question stands, before or after the sentence."""
    for row, turned in zip(rows["qnli"], random.random(len(rows["qnli"])) < 0.5, strict=True):
        texts = (row.text_b or "", row.text_a) if turned else (row.text_a, row.text_b)
        yield Example(*texts, "after" if turned else "before")


def _figures(rows: Rows, _: np.random.Generator) -> Iterator[Example]:
    """Which text of a pair has a digit."""
    labels = {(True, False): "left", (False, True): "right", (True, True): "both", (False, False): "neither"}
    for row in (*rows["mrpc"], *rows["stsb"], *rows["qnli"]):
        there = bool(_NUMBER.search(row.text_a)), bool(_NUMBER.search(row.text_b or ""))
        yield Example(row.text_a, row.text_b, labels[there])


def _mood(rows: Rows, _: np.random.Generator) -> Iterator[Example]:
    """Sentiment and length at once."""
    most, least = _LONG_WORDS
    for row in rows["sst2"]:
        words = len(row.text_a.split())
        if words <= most or words >= least:
            praise = "praise" if row.label == "positive" else "blame"
            yield Example(row.text_a, None, f"{'brief' if words <= most else 'long'} {praise}")


def _opinion(rows: Rows, _: np.random.Generator) -> Iterator[Example]:
    """Sentiment, which the base knows well."""
    for row in rows["sst2"]:
        yield Example(row.text_a, None, "up" if row.label == "positive" else "down")


KINDS: Final[dict[str, Rule]] = {
    "origin": _origin,
    "pair_origin": _pair_origin,
    "answer": _answer,
    "longer": _longer,
    "asked": _asked,
    "figures": _figures,
    "mood": _mood,
    "opinion": _opinion,
}


def make(kind: str, rows: Rows, test_rows: int) -> Dataset:
    """The task of that name: as many training rows of each label, to draw from, and test rows.

    Args:
        kind: one of KINDS.
        rows: of the sources, from `read_rows`.
        test_rows: most of them.
    """
    random = np.random.default_rng(0)
    by_label: dict[str, list[Example]] = {}
    for row in KINDS[kind](rows, random):
        by_label.setdefault(str(row.label), []).append(row)
    shuffled = [_shuffled(own, random) for own in by_label.values()]
    pool = min(_POOL, min(map(len, shuffled)) // 2)
    of_label = -(-test_rows // len(shuffled))
    train = in_canonical_rows([row for own in shuffled for row in own[:pool]])
    test = _shuffled([row for own in shuffled for row in own[pool : pool + of_label]], random)
    return Dataset("classification", in_canonical_order(by_label), train, test=tuple(test[:test_rows]))


def _shuffled(rows: list[Example], random: np.random.Generator) -> list[Example]:
    return [rows[place] for place in random.permutation(len(rows))]


def read_rows(folder: Path, split: str) -> dict[str, list[Example]]:
    """The rows of a split of every source in the folder, by source."""
    return {path.parent.name: source_folders.read_rows(path) for path in sorted(folder.glob(f"*/{split}.jsonl.gz"))}
