"""The tasks of the stream: seven datasets as they are, and eight made by renaming, restricting or merging.

No two tasks share a row: the rows of a dataset are dealt among the tasks that use it. Made tasks train on rows of the
validation splits, since the sources' own training rows are known to the base.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Final, TypeVar

import numpy as np

from bench.harness.as_if_new import drawn_tests
from onboard.data.read import ReadOptions, read_dataset
from onboard.data.splits import shots
from onboard.domain.dataset import Dataset, Example, Label, in_canonical_order, in_canonical_rows

T = TypeVar("T")
Relabel = Callable[[Label], str | None]  # a row's label here; None leaves the row out


@dataclass(frozen=True)
class Task:
    """One task of the stream.

    Args:
        name: what it is called.
        how: what it is made of, for people.
        of: by dataset (`target/imdb`), what its labels are called here; None keeps them.
        first_text: of pairs, the first text alone.
    """

    name: str
    how: str
    of: Mapping[str, Relabel | None]
    first_text: bool = False

    @property
    def made(self) -> bool:
        """Whether it is not a dataset as it is."""
        return any(self.of.values())


def _alike(score: Label) -> str | None:
    return "alike" if float(score) >= 4 else "different" if float(score) <= 1 else None


def _named(names: Mapping[str, str]) -> Relabel:
    return lambda label: names.get(str(label))


def _always(label: str) -> Relabel:
    return lambda _: label


_TARGETS: Final = {
    "scitail": "SciTail", "cb": "CB", "trec": "TREC", "boolq": "BoolQ", "imdb": "IMDB", "yelp_polarity": "Yelp",
    "paws": "PAWS",
}  # fmt: skip
_SAME: Final = {
    "paraphrase": "same", "duplicate": "same", "not_paraphrase": "different", "not_duplicate": "different"
}  # fmt: skip
TASKS: Final = (
    *(Task(name, title, {f"target/{name}": None}) for name, title in _TARGETS.items()),
    Task("good-bad", "SST-2, its labels renamed", {"source/sst2": _named({"positive": "good", "negative": "bad"})}),
    Task(
        "recommended", "IMDB, its labels renamed",
        {"target/imdb": _named({"positive": "recommended", "negative": "avoid"})},
    ),
    Task(
        "trec-three", "TREC, three of its six labels",
        {"target/trec": _named({name: name for name in ("human", "location", "number")})},
    ),
    Task("alike", "STS-B, up to 1 and from 4 on, as two labels", {"source/stsb": _alike}),
    Task(
        "contradicted", "MNLI, two of its labels merged",
        {"source/mnli": _named({"contradiction": "contradicted", "entailment": "possible", "neutral": "possible"})},
    ),
    Task(
        "topic", "IMDB and Yelp merged: which of them a text is of",
        {"target/imdb": _always("film"), "target/yelp_polarity": _always("business")},
    ),
    Task(
        "text-kind", "SST-2, CoLA, QQP and MRPC merged: which of them a text is of",
        {"source/sst2": _always("review"), "source/cola": _always("example"), "source/qqp": _always("question"),
         "source/mrpc": _always("news")},
        first_text=True,
    ),
    Task(
        "paraphrases", "QQP, MRPC and PAWS merged, their labels renamed",
        dict.fromkeys(("source/qqp", "source/mrpc", "target/paws"), _named(_SAME)),
    ),
)  # fmt: skip
NAMED: Final = {task.name: task for task in TASKS}


def in_order(names: Sequence[str], order: int) -> list[str]:
    """The tasks as the stream of that number (from 0) brings them."""
    return [names[place] for place in np.random.default_rng(order).permutation(len(names))]


def drawn(data: Path, name: str, rows: int, order: int, test_rows: int) -> tuple[Dataset, list[Example]]:
    """So many labelled rows of a task, drawn anew in each order, and its test rows, always the same ones.

    Args:
        data: folder with source/ and target/.
        name: of the task.
        rows: labelled rows in all.
        order: seed of the draw.
        test_rows: most rows to test on.
    """
    dataset = shots(_read(data, name), rows, order)
    return dataset, drawn_tests(dataset, test_rows)


@cache
def _read(data: Path, name: str) -> Dataset:
    task = NAMED[name]
    parts = [_part(data, task, folder, relabel) for folder, relabel in task.of.items()]
    train, test = ([row for part in parts for row in getattr(part, split)] for split in ("train", "test"))
    labels = in_canonical_order(row.label for row in train)
    return Dataset("classification", labels, in_canonical_rows(train), test=in_canonical_rows(test))


def _part(data: Path, task: Task, folder: str, relabel: Relabel | None) -> Dataset:
    """What a task has of a dataset."""
    split = "validation" if task.made else "train"
    options = ReadOptions(test=data / folder / "test.jsonl.gz", suspects=False)
    whole = read_dataset(data / folder / f"{split}.jsonl.gz", options).dataset
    return replace(
        whole,
        train=tuple(_relabelled(_dealt(whole.train, task, folder), task, relabel)),
        test=tuple(_relabelled(_dealt(whole.test, task, folder), task, relabel)),
    )


def _dealt(rows: Sequence[T], task: Task, folder: str) -> Sequence[T]:
    users = [user.name for user in TASKS if folder in user.of]
    return rows[users.index(task.name) :: len(users)]


def _relabelled(rows: Sequence[Example], task: Task, relabel: Relabel | None) -> list[Example]:
    labels = [relabel(row.label) if relabel else row.label for row in rows]
    return [
        replace(row, label=label, text_b=None if task.first_text else row.text_b)
        for row, label in zip(rows, labels, strict=True)
        if label is not None
    ]
