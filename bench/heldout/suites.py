"""Which tasks are measured: those that designs are chosen by, and those that never choose one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from bench.heldout.figures import Results
from bench.heldout.verdicts import TARGET_ROWS, held_out_verdicts, target_verdicts


@dataclass(frozen=True)
class Suite:
    """Tasks that nothing was trained on.

    Args:
        folder: among the datasets.
        title: of the page.
        verdicts: the targets, a row of the table each.
        by: by what accuracy is distinguished, "family" or "task".
        rows: with how many that is.
    """

    folder: str
    title: str
    verdicts: Callable[[Results], list[str]]
    by: Literal["family", "task"]
    rows: Sequence[int]

    def groups(self, results: Results) -> dict[str, list[str]]:
        """The tasks that are reported together."""
        of_group: dict[str, list[str]] = {}
        for task, family in results.tasks.items():
            of_group.setdefault(task if self.by == "task" else family, []).append(task)
        return of_group


HELD_OUT: Final = "heldout"
SUITES: Final[Mapping[str, Suite]] = {
    HELD_OUT: Suite(
        "wide", "Tasks that nothing was trained on: the default and alternatives", held_out_verdicts,
        "family", (16, 32),
    ),
    "targets": Suite(
        "target", "Seven tasks that no design was chosen by: the default and alternatives",
        target_verdicts, "task", TARGET_ROWS,
    ),
}  # fmt: skip
