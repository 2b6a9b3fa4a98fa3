"""The tasks of the series, in the order in which an installation meets them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from bench.heldout.material import Cell, LoadedBase
from bench.heldout.plan import ArmRun
from bench.transfer.material import read
from onboard.domain.dataset import Dataset


@dataclass(frozen=True)
class Series:
    """Related tasks.

    Args:
        name: of the series.
        tasks: `SERIES-NN_task`, in their order.
    """

    name: str
    tasks: tuple[str, ...]

    @property
    def first_half(self) -> tuple[str, ...]:
        """Those that are learned before; of an odd number the smaller half."""
        return self.tasks[: len(self.tasks) // 2]

    @property
    def last_half(self) -> tuple[str, ...]:
        """Those that are learned with and without the first half."""
        return self.tasks[len(self.tasks) // 2 :]


def all_series(folder: Path) -> list[Series]:
    """The series in the folder."""
    names = sorted(place.name for place in folder.iterdir() if place.is_dir())
    return [Series(name, _tasks(folder, name)) for name in names]


def _tasks(folder: Path, name: str) -> tuple[str, ...]:
    return tuple(f"{name}-{place.name}" for place in sorted((folder / name).iterdir()) if place.is_dir())


def dataset_of(folder: Path, task: str) -> Dataset:
    """All rows of a task."""
    name, _, own = task.partition("-")
    return read(folder / name / own)


class Cells:
    """The cell of a run; that of the run before is remembered.

    Args:
        place: what tasks are learned on.
        folder: of the series.
    """

    def __init__(self, place: LoadedBase, folder: Path) -> None:
        self.place, self.folder = place, folder
        self._last: tuple[object, Cell] | None = None

    def of(self, run: ArmRun) -> Cell:
        """The rows of the run."""
        if self._last is None or self._last[0] != run.cell:
            self._last = run.cell, Cell(self.place, dataset_of(self.folder, run.task), run)
        return self._last[1]
