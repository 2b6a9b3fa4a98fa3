"""A task learned as if it were new: the base without it and what that offers, and the test rows that all take."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from onboard.bases import Base
from onboard.domain.dataset import Dataset, Example
from onboard.model.engine import Engine
from onboard.model.protected import ProtectedTask
from onboard.pipeline.candidates import shipped_candidates
from onboard.pipeline.check import label_words
from onboard.pipeline.material import Workbench
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
    """The candidates of an empty home, but for the task itself and the made tasks that bear its name."""
    rest = without(base, task)
    sources = source_candidates(rest)
    return [*sources, *shipped_candidates(rest, [candidate.z for candidate in sources], seed, fingerprint)]


def source_candidates(base: Base) -> list[Candidate]:
    """The embeddings of the base's sources, as starts."""
    return [
        Candidate(source.name, base.embeddings[source.name], source.words, source.kind == "regression")
        for source in base.sources
    ]


def shipped_tasks(base: Base, engine: Engine) -> list[ProtectedTask]:
    """The base's sources as earlier tasks, under the hypernetwork that they were shipped with."""
    return [
        ProtectedTask(source.name, base.embeddings[source.name], engine.trie(source.words), engine.hypernetwork)
        for source in base.sources
    ]


def workbench(base: Base, engine: Engine, dataset: Dataset) -> Workbench:
    """Where a task is learned, in words that stand for its labels."""
    return Workbench(base, engine, dataset, label_words(dataset, engine))


def drawn_tests(dataset: Dataset, most: int) -> list[Example]:
    """At most so many test rows, always the same ones, whatever rows are trained on."""
    order = np.random.default_rng(0).permutation(len(dataset.test))
    return [dataset.test[row] for row in order[:most]]
