"""Lessons of earlier tasks: their lessons, the priors of some of them, and a base that has learned no others."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Collection, Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import numpy as np
from safetensors import safe_open
from safetensors.numpy import save

from bench.harness.as_if_new import bears
from bench.harness.source_folders import source_places
from bench.heldout.families import held_out
from bench.heldout.features import Features
from bench.heldout.material import LoadedBase
from bench.transfer.material import read
from onboard.bases import Base
from onboard.data.splits import shots
from onboard.data.targets import label_weights
from onboard.data.verbaliser import words_of
from onboard.domain.dataset import Dataset, Example
from onboard.model.readout_features import blocks_of
from onboard.registry.services import Services
from onboard.statistics.prior import Lesson, Prior, fit_prior
from onboard.statistics.readout import lesson_of

LESSON_ROWS: Final = 240  # of a source, as balanced as it has them
_LESSONS, _DOCUMENT = "lessons.safetensors", "base.json"
_PRIORS: Final = "onboard.hypernetworks.prior"


def source_lessons(place: LoadedBase, data: Path, features: Features) -> dict[str, Lesson]:
    """The lesson of every source task with labels: those that the base ships, or made here from the source's rows.

    Args:
        place: whose base it is.
        data: folder with `source` and `wide`; needed only where the base ships none.
        features: of its encoder.
    """
    shipped: dict[str, Lesson] = dict(getattr(place.base, "lessons", {}))
    if shipped:
        return shipped
    held = set(held_out(data / "wide"))
    lessons = {}
    for name, folder in sorted(source_places(data).items()):
        if name not in held and (dataset := read(folder)).kind == "classification":
            lessons[name] = lesson_from(name, shots(dataset, LESSON_ROWS, 0), features)
    return lessons


def lesson_from(name: str, dataset: Dataset, features: Features) -> Lesson:
    """The lesson of the training rows of a task with labels, each counting as it does in a job."""
    rows = dataset.train
    places = np.array(dataset.class_indices(rows))
    present = np.unique(places)  # a label without a row teaches nothing
    words = [Example(words_of(dataset.labels[label]), None, dataset.labels[label]) for label in present]
    targets = (np.eye(len(dataset.labels)) * label_weights(dataset))[places][:, present]
    blocks = blocks_of(pairs=rows[0].text_b is not None)
    return lesson_of(features.of(name, rows), targets, features.of(name, words), blocks)


def form_of(cell_width: int, lessons: Mapping[str, Lesson]) -> dict[str, Lesson]:
    """The lessons of tasks whose rows have so many features: single texts or pairs."""
    return {task: lesson for task, lesson in lessons.items() if lesson.weights.shape[1] == cell_width}


def prior_of(lessons: Mapping[str, Lesson], width: int) -> Prior | None:
    """The prior that lessons make for rows with so many features; None without a lesson of that form."""
    return fit_prior(form_of(width, lessons))


def refit_prior(services: Services, base: Base) -> None:
    """Fit the prior of a home to the learned tasks there by now, as a worker does in the background.

    A release without a prior in its service has nothing to fit.
    """
    if find_spec(_PRIORS) is not None:
        import_module(f"{_PRIORS}.refit").refit(services, base, "for the bench")


def first_tasks(names: Collection[str], count: int, seed: int) -> list[str]:
    """So many of the tasks, or all there are, in an order of the seed: fewer are the first of more."""

    def place(name: str) -> str:
        return hashlib.sha256(f"{seed} {name}".encode()).hexdigest()

    return sorted(names, key=place)[:count]


def base_of(base: Base, sources: Collection[str], folder: Path, lessons: bytes | None = None) -> Base:
    """A base that has learned no other sources: no other embedding starts a task, no other lesson is in its prior.

    Of the anchors only those stay that bear the name of such a source; with every source all of them.

    Args:
        base: that is cut down.
        sources: names of those that stay.
        folder: where it is written; existing files are replaced.
        lessons: the file of the lessons of these sources; None leaves the base without one.
    """
    document = json.loads((base.folder / _DOCUMENT).read_text(encoding="utf-8"))
    whole = set(document["sources"]) <= set(sources)
    own = {name: of for name, of in document["sources"].items() if name in sources}
    anchors = {
        name: of
        for name, of in document.get("anchors", {}).items()
        if whole or any(bears(name, source) for source in own)
    }
    document |= {"sources": own, "anchors": anchors}
    document.pop("lessons", None)  # the digest of the file of all
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(base.folder, folder, ignore=shutil.ignore_patterns(_LESSONS))
    (folder / _DOCUMENT).write_text(json.dumps(document), encoding="utf-8")
    if lessons is not None:
        (folder / _LESSONS).write_bytes(lessons)
    return Base(folder, document)


def packed_lessons(base: Base, names: Collection[str]) -> bytes | None:
    """The file of a base's lessons with those of these tasks only; None where it ships none."""
    path = base.folder / _LESSONS
    if not path.is_file():
        return None
    with safe_open(path, "numpy") as file:
        facts = dict(file.metadata())
        tensors = {key: file.get_tensor(key) for key in sorted(file.keys()) if key.partition(".")[0] in names}
    rows = {task: count for task, count in json.loads(facts["rows"]).items() if task in names}
    packed: bytes = save(tensors, metadata={**facts, "rows": json.dumps(rows)})
    return packed


def lessons_digest(base: Base) -> str:
    """Identity of the lessons that a base ships; empty where it ships none, and its sources' rows make them."""
    path = base.folder / _LESSONS
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16] if path.is_file() else ""
