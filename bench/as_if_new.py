"""A task learned as if it were new: the base without it, and the test rows that every bench takes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from onboard.bases import Base
from onboard.domain.dataset import Dataset, Example


def without(base: Base, task: str) -> Base:
    """The base without the source of that name and without the made tasks (anchors) that bear it."""
    lists = {key: base.document.get(key, {}) for key in ("sources", "anchors")}
    kept = {key: {name: of for name, of in each.items() if not bears(name, task)} for key, each in lists.items()}
    return replace(base, document={**base.document, **kept})


def bears(name: str, task: str) -> bool:
    """Whether the task's name is one of the parts of a name that hyphens join."""
    return f"-{task}-" in f"-{name}-"


def drawn_tests(dataset: Dataset, most: int) -> list[Example]:
    """At most so many test rows, always the same ones, whatever rows are trained on."""
    order = np.random.default_rng(0).permutation(len(dataset.test))
    return [dataset.test[row] for row in order[:most]]
