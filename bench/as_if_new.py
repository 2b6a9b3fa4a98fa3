"""A task learned as if it were new: the base without it, and the test rows that every bench takes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from onboard.bases import Base
from onboard.domain.dataset import Dataset, Example
from onboard.pipeline.candidates import shipped_candidates
from onboard.probe.candidates import Candidate


def without(base: Base, task: str) -> Base:
    """The base without the source of that name and without the made tasks (anchors) that bear it."""
    lists = {key: base.document.get(key, {}) for key in ("sources", "anchors")}
    others = {key: {name: of for name, of in tasks.items() if not bears(name, task)} for key, tasks in lists.items()}
    return replace(base, document={**base.document, **others})


def bears(name: str, task: str) -> bool:
    """Whether the task's name is one of the parts of a name that hyphens join."""
    return f"-{task}-" in f"-{name}-"


def candidates(base: Base, seed: int, task: str, fingerprint: np.ndarray | None) -> list[Candidate]:
    """What an empty home would offer, but for the task itself and the made tasks that bear its name."""
    rest = without(base, task)
    sources = [
        Candidate(source.name, rest.embeddings[source.name], source.words, source.kind == "regression")
        for source in rest.sources
    ]
    return [*sources, *shipped_candidates(rest, [candidate.z for candidate in sources], seed, fingerprint)]


def drawn_tests(dataset: Dataset, most: int) -> list[Example]:
    """At most so many test rows, always the same ones, whatever rows are trained on."""
    order = np.random.default_rng(0).permutation(len(dataset.test))
    return [dataset.test[row] for row in order[:most]]
