"""The rows of a run, the same for all arms, as a user submits them; and what they are learned on."""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Final

import numpy as np

from bench.harness.as_if_new import drawn_tests
from bench.heldout.plan import AS_THEY_COME, ArmRun
from bench.transfer.material import read
from onboard.bases import Base, find_base, folder_digest
from onboard.bases.load import load_engine, resolve_device
from onboard.data.read import Checked, ReadOptions, read_dataset
from onboard.data.splits import holdout, shots, split_rank
from onboard.domain.dataset import Dataset, Example, class_indices, example_key, label_key
from onboard.model.backbone import load_backbone
from onboard.model.encoding import TextEncoder
from onboard.model.engine import Engine
from onboard.model.tokenizer import load_tokenizer
from onboard.pipeline.check import label_words
from onboard.pipeline.material import Workbench

TEST_ROWS: Final = 300
_LIKE: Final = "mini"  # how a bare backbone is asked: its separator of pairs, its length of texts


@dataclass(frozen=True)
class LoadedBase:
    """The base that tasks are learned on.

    Args:
        base: with its hypernetwork; of a bare backbone only the parts to read texts.
        engine: its model.
        bare: whether it is a bare backbone, on which nothing can be learned but what reads features.
    """

    base: Base
    engine: Engine
    bare: bool = False

    @cached_property
    def digest(self) -> str:
        """Identity of the backbone."""
        return folder_digest(self.base.folder) if self.bare else self.base.backbone_digest

    @property
    def device(self) -> str:
        """Where it computes: cpu or cuda:N."""
        return str(self.engine.device)

    @property
    def base_digest(self) -> str:
        """Identity of the base; of a bare backbone that of the backbone."""
        return self.digest if self.bare else self.base.digest


def opened(name: str, device: str = "cpu") -> LoadedBase:
    """A base by its name or folder, or a bare backbone by its folder. Raises as `find_base` and `load_backbone`."""
    folder = Path(name)
    if (folder / "base.json").is_file() or not (folder / "config.json").is_file():
        base = find_base(name)
        return LoadedBase(base, load_engine(base, device))
    known = find_base(_LIKE)
    encoder = TextEncoder(load_tokenizer(folder), known.document["pair_separator"], known.document["max_tokens"])
    engine = Engine(load_backbone(folder), load_engine(known, "cpu").hypernetwork, encoder)  # which is never asked
    engine = engine.to(resolve_device(device))
    return LoadedBase(Base(folder.resolve(), {**known.document, "name": folder.name}), engine, bare=True)


def rarest_label(folder: Path) -> float:
    """Share of a task's rarest label among all its training rows; 1 of a regression."""
    dataset = read(folder)
    if dataset.kind == "regression":
        return 1.0
    counts = Counter(label_key(row.label) for row in dataset.train)
    return min(counts.values()) / len(dataset.train)


class Cell:
    """One draw of a task's rows.

    Args:
        place: what it is learned on.
        whole: all rows of the task.
        run: names task, rows, draw and sampling; any arm of it.
    """

    def __init__(self, place: LoadedBase, whole: Dataset, run: ArmRun) -> None:
        self.place, self.task, self.draw = place, run.task, run.draw
        self.checked = as_submitted(_drawn(whole, run))
        self.dataset = self.checked.dataset
        self.labels = whole.labels  # of the task: rows of some may be missing in a draw
        self.test = drawn_tests(whole, TEST_ROWS)

    @property
    def regression(self) -> bool:
        """Whether its labels are numbers."""
        return self.dataset.kind == "regression"

    @cached_property
    def columns(self) -> list[int]:
        """Which of the task's labels each label of the draw is."""
        places = {label_key(label): place for place, label in enumerate(self.labels)}
        return [places[label_key(label)] for label in self.dataset.labels]

    @cached_property
    def truth(self) -> np.ndarray:
        """Of the test rows (m,): the place in `labels`, or the value."""
        if self.regression:
            return np.array([float(row.label) for row in self.test])
        return np.array(class_indices(self.labels, self.test), dtype=np.int64)

    @cached_property
    def train_labels(self) -> np.ndarray:
        """Of the drawn rows (n,): the place in the draw's own labels, or the value."""
        if self.regression:
            return np.array([float(row.label) for row in self.dataset.train])
        return np.array(self.dataset.class_indices(self.dataset.train), dtype=np.int64)

    @cached_property
    def bench(self) -> Workbench:
        """Where a job learns it: rows held out as a job holds them out."""
        engine = self.place.engine
        return Workbench(self.place.base, engine, holdout(self.dataset, self.draw), label_words(self.dataset, engine))


def _drawn(whole: Dataset, run: ArmRun) -> Dataset:
    if run.sampling != AS_THEY_COME:
        return shots(whole, run.rows, run.draw)
    ranked = sorted(whole.train, key=lambda row: split_rank(run.draw, example_key(row)))
    return replace(whole, train=tuple(ranked[: run.rows]))


def as_submitted(drawn: Dataset) -> Checked:
    """The drawn rows alone, read and checked as a file that somebody submits: its labels are those that rows have."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.jsonl"
        path.write_text("".join(json.dumps(_written(row)) + "\n" for row in drawn.train), encoding="utf-8")
        return read_dataset(path, ReadOptions(kind=drawn.kind, suspects=False, hide_folders=True))


def _written(row: Example) -> dict[str, object]:
    texts = {"text": row.text_a} if row.text_b is None else {"text_a": row.text_a, "text_b": row.text_b}
    return {**texts, "label": row.label}


class Cells:
    """The cell of a run; that of the run before is remembered.

    Args:
        place: what tasks are learned on.
        folder: of the tasks.
    """

    def __init__(self, place: LoadedBase, folder: Path) -> None:
        self.place, self.folder = place, folder
        self._last: tuple[object, Cell] | None = None

    def of(self, run: ArmRun) -> Cell:
        """The rows of the run."""
        if self._last is None or self._last[0] != run.cell:
            self._last = run.cell, Cell(self.place, read(self.folder / run.task), run)
        return self._last[1]


def rows_of_labels(cell: Cell) -> Sequence[int]:
    """How many of the drawn rows each of the task's labels has (K,)."""
    counts = np.zeros(len(cell.labels), dtype=np.int64)
    np.add.at(counts, np.array(cell.columns, dtype=np.int64)[cell.train_labels], 1)
    return [int(count) for count in counts]
