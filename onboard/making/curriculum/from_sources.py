"""The sources as they are, with other words, restricted, cut and merged."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from onboard.making.curriculum.rows import RowsTask
from onboard.making.curriculum.source import Source
from onboard.making.curriculum.synonyms import synonyms
from onboard.making.curriculum.workshop import Workshop, recoded, task_name

_MEANINGS, _RANDOM = 6, 2  # wordings of a source: as many that mean the same, then swapped, then random words
_STEPS = ("zero", "one", "two", "three", "four", "five")
_CUTS = (
    (0.3, (("unrelated", "related"), ("different", "close"))),
    (0.5, (("different", "similar"), ("unlike", "like"), ("no", "yes"))),
    (0.7, (("different", "same"), ("distinct", "equal"), ("other", "same"))),
)
_ENDS = ((0.2, 0.8), (("opposite", "same"), ("unrelated", "equal"), ("far", "near"), ("different", "similar")))
_THIRDS = (("different", "related", "same"), ("low", "medium", "high"), ("far", "close", "equal"))


def sources(workshop: Workshop) -> list[RowsTask]:
    """The sources with their own words, in their order."""
    return [workshop.task(source.name, source.words, workshop.of_source(source)) for source in workshop.sources]


def renamed(workshop: Workshop) -> list[RowsTask]:
    """Each source under words that mean the same, with its words swapped, and with random words; scales have none."""
    made = []
    for source in workshop.sources:
        if source.kind == "regression":
            continue
        rng = workshop.random(f"renamed-{source.name}")
        wordings = workshop.wording.fitting(_same_meaning(workshop, source.words, rng))[:_MEANINGS]
        own, common = list(source.words), workshop.wording.words
        wordings.append((own[-1], *own[:-1]))
        if len(common) > 4 * len(own):
            drawn = [rng.choice(len(common), len(own), replace=False) for _ in range(_RANDOM)]
            wordings += workshop.wording.fitting([[common[index] for index in indices] for indices in drawn])
        rows = workshop.of_source(source)
        made += [workshop.task(task_name(source.name, words), words, rows) for words in wordings]
    return made


def _same_meaning(workshop: Workshop, words: Sequence[str], rng: np.random.Generator) -> list[tuple[str, ...]]:
    columns = []
    for word in words:
        others = [other for other in words if other != word]
        columns.append(synonyms(word) or tuple(workshop.wording.near(word, 4, apart_from=others)))
    if not all(columns):
        return []
    aligned = list(zip(*columns, strict=False))
    crossed = [tuple(column[int(rng.integers(len(column)))] for column in columns) for _ in range(12)]
    return list(dict.fromkeys(aligned[:3] + crossed + aligned[3:]))


def restricted(workshop: Workshop) -> list[RowsTask]:
    """Each pair of the labels of a task that has more; a scale cut into words at several places."""
    made = []
    for source in workshop.sources:
        made += _cut(workshop, source) if source.kind == "regression" else _restricted(workshop, source)
    return made


def _restricted(workshop: Workshop, source: Source) -> list[RowsTask]:
    made: list[RowsTask] = []
    if len(source.labels) < 3:
        return made
    whole = workshop.of_source(source)
    for chosen in combinations(range(len(source.labels)), 2):
        words = [source.words[index] for index in chosen]
        stem = f"{source.name}-only"
        rows = workshop.rows(task_name(stem, words), whole.left, whole.right, recoded(whole.classes, chosen), 2)
        others = list(zip(*map(synonyms, words), strict=False))
        made += workshop.tasks(stem, [words, *others[:2]], rows)
    return made


def _cut(workshop: Workshop, source: Source) -> list[RowsTask]:
    whole, values = workshop.of_source(source), source.values()
    position = (values - values.min()) / (values.max() - values.min())  # (N,) from 0 to 1
    made = []
    ways: list[tuple[str, np.ndarray, Sequence[Sequence[str]]]] = [
        (f"{source.name}-cut-{round(100 * at)}", (position > at).astype(int), words) for at, words in _CUTS
    ]
    low, high = _ENDS[0]
    ends = np.where(position <= low, 0, np.where(position >= high, 1, -1))
    ways.append((f"{source.name}-ends", ends, _ENDS[1]))
    ways.append((f"{source.name}-thirds", (position > 0.36).astype(int) + (position > 0.7), _THIRDS))
    ways.append((f"{source.name}-steps", np.minimum((position * 5).round().astype(int), 5), (_STEPS,)))
    for stem, classes, wordings in ways:
        rows = workshop.rows(stem, whole.left, whole.right, classes, len(wordings[0]))
        made += workshop.tasks(stem, wordings, rows)
    return made
