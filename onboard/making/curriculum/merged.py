"""Merged labels, united tasks with the same relation, and the combined labels of two tasks."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Final

import numpy as np

from onboard.making.curriculum.rows import RowsTask
from onboard.making.curriculum.source import Source
from onboard.making.curriculum.synonyms import synonyms
from onboard.making.curriculum.workshop import Workshop, task_name

_APART: Final = {  # the label that stays separate, and words for it and the rest
    "entailment": (("entailment", "not entailment"), ("true", "unproven"), ("follows", "open")),
    "contradiction": (("contradiction", "possible"), ("conflict", "consistent"), ("impossible", "possible")),
    "neutral": (("neutral", "decided"), ("uncertain", "certain"), ("unknown", "known")),
}
_RELATIONS: Final = (  # labels of several sources with the same meaning: words of either side, wordings
    (
        "same-meaning",
        (("not duplicate", "not paraphrase"), ("duplicate", "paraphrase")),
        (("different", "same"), ("unlike", "alike"), ("distinct", "equivalent"), ("no", "yes")),
    ),
    (
        "supported",
        (("not entailment", "neutral", "contradiction"), ("entailment",)),
        (("no", "yes"), ("unsupported", "supported"), ("false", "true"), ("open", "follows")),
    ),
    (
        "any-relation",
        (
            ("not entailment", "neutral", "contradiction", "not duplicate", "not paraphrase"),
            ("entailment", "duplicate", "paraphrase"),
        ),
        (("no", "yes"), ("false", "true"), ("differs", "agrees")),
    ),
)


def merged(workshop: Workshop) -> list[RowsTask]:
    """Return all tasks of this kind."""
    classified = [source for source in workshop.sources if source.kind == "classification"]
    made = [task for source in classified for task in _merged_labels(workshop, source)]
    for stem, sides, wordings in _RELATIONS:
        made += _united(workshop, classified, f"union-{stem}", sides, wordings)
    for pair in combinations(classified, 2):
        if pair[0].pairs == pair[1].pairs:
            made += _joint(workshop, pair)
    return made


def _merged_labels(workshop: Workshop, source: Source) -> list[RowsTask]:
    if len(source.labels) < 3:
        return []
    made = []
    whole = workshop.of_source(source)
    for place, word in enumerate(source.words):
        classes = (whole.classes != place).astype(int)
        rows = workshop.rows(f"{source.name}-{word}", whole.left, whole.right, classes, 2)
        wordings = _APART.get(word, ((word, f"not {word}"),))
        made += workshop.tasks(f"{source.name}-merged", wordings, rows)
    return made


def _united(
    workshop: Workshop,
    sources: Sequence[Source],
    stem: str,
    sides: Sequence[Sequence[str]],
    wordings: Sequence[Sequence[str]],
) -> list[RowsTask]:
    parts = []
    for source in sources:
        side_of = [next((n for n, side in enumerate(sides) if word in side), -1) for word in source.words]
        if source.pairs and -1 not in side_of:
            parts.append((source, np.array(side_of)))
    if len(parts) < 2:
        return []
    return _of_several(workshop, stem, parts, len(sides), wordings)


def _joint(workshop: Workshop, pair: Sequence[Source]) -> list[RowsTask]:
    """Return tasks with the labels of both sources: the label also identifies the source."""
    first, second = (len(source.labels) for source in pair)
    parts = [(pair[0], np.arange(first)), (pair[1], first + np.arange(second))]
    words = [*pair[0].words, *pair[1].words]
    synonym_words = list(zip(*([*synonyms(word)[:4], word] for word in words), strict=False))
    stem = f"joint-{pair[0].name}-{pair[1].name}"
    return _of_several(workshop, stem, parts, first + second, workshop.wording.fitting([words, *synonym_words])[:2])


def _of_several(
    workshop: Workshop,
    stem: str,
    parts: Sequence[tuple[Source, np.ndarray]],
    count: int,
    wordings: Sequence[Sequence[str]],
) -> list[RowsTask]:
    rows = [workshop.of_source(source) for source, _ in parts]
    left = np.concatenate([part.left for part in rows])
    right = np.concatenate([part.right for part in rows if part.right is not None]) if parts[0][0].pairs else None
    classes = np.concatenate([new[part.classes] for part, (_, new) in zip(rows, parts, strict=True)])
    return workshop.tasks(stem, wordings, workshop.rows(task_name(stem, []), left, right, classes, count))
