"""The family of a task, and of what a training starts from: sentiment, topic, nli …"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from bench.harness.as_if_new import bears
from onboard.bases import Base

GLUE: Final[Mapping[str, str]] = {
    "cola": "grammar", "sst2": "sentiment", "mrpc": "paraphrase", "qqp": "paraphrase", "stsb": "similarity",
    "mnli": "nli", "rte": "nli", "qnli": "qa",
}  # fmt: skip
TARGETS: Final[Mapping[str, str]] = {
    "scitail": "nli", "cb": "nli", "trec": "question", "boolq": "qa", "imdb": "sentiment",
    "yelp_polarity": "sentiment", "paws": "paraphrase",
}  # fmt: skip
HELD_OUT, TABLES, _COLUMN = "heldout.txt", "README.md", "family"


def held_out(folder: Path) -> list[str]:
    """The names of the tasks that nothing is trained on: those of the folder's list, without one all of the folder."""
    if (folder / HELD_OUT).is_file():
        return (folder / HELD_OUT).read_text(encoding="utf-8").split()
    return sorted(task.name for task in folder.iterdir() if task.is_dir())


def families(folder: Path) -> dict[str, str]:
    """The family of every task that the tables of the folder's README name, of GLUE's and of the targets."""
    tables = folder / TABLES
    lines = tables.read_text(encoding="utf-8").splitlines() if tables.is_file() else []
    return {**GLUE, **TARGETS, **dict(_rows(lines))}


def _rows(lines: Iterable[str]) -> Iterable[tuple[str, str]]:
    """Name and family in each row of the tables that have that column."""
    column = 0
    for line in lines:
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if cells[0] == "dataset":
            column = cells.index(_COLUMN) if _COLUMN in cells else 0
        elif not line.startswith("|"):
            column = 0
        elif column and len(cells) > column and not cells[0].startswith("-"):
            yield cells[0], cells[column]


class Families:
    """The families of tasks on a base.

    Args:
        of_task: family by task.
        base: whose sources and made tasks a training may start from.
    """

    def __init__(self, of_task: Mapping[str, str], base: Base) -> None:
        self._of_task = of_task
        self._sources = {source.name: self.of(source.name) for source in base.sources}
        self._anchors = {anchor.name for anchor in base.anchors}

    def of(self, task: str) -> str:
        """Of a task; empty where it has none."""
        return self._of_task.get(task, "")

    def has(self, family: str) -> bool:
        """Whether the base has a source of that family."""
        return family in self._sources.values()

    def of_start(self, embedding: str) -> str:
        """Of an embedding that a training may start from: `sst2@v1`, or a made task that bears a source's name."""
        task = embedding.partition("@")[0]
        if task in self._anchors:
            task = next((source for source in self._sources if bears(task, source)), "")
        return self.of(task)

    def taken(self, task: str, init: Mapping[str, Any]) -> dict[str, Any]:
        """The start that a job's probe chose, for its row: how near it is to the task.

        Args:
            task: that was learned.
            init: of the job's document.
        """
        own, weights = self.of(task), init.get("weights") or {}
        first = max(weights, key=lambda name: float(weights[name])) if weights else init["chosen"]
        best = [name for name in self._ranked(first, init) if self.of_start(name)][:3]
        return {
            "chosen": init["chosen"], "start": first, "start_family": self.of_start(first), "best": best,
            "in_base": self.has(own), "top1": self.of_start(first) == own,
            "top3": own in [self.of_start(name) for name in best],
        }  # fmt: skip

    @staticmethod
    def _ranked(first: str, init: Mapping[str, Any]) -> Sequence[str]:
        """The candidates, that which was taken first."""
        return list(dict.fromkeys([first, *(score["embedding"] for score in init.get("candidates") or [])]))
