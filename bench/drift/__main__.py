"""False alarms of drift, texts until a new topic is noticed, and what the daily numbers cost serving.

    python -m bench.drift

The tasks are next to the checkout (../shared/data) or in --data; where they are missing it says so and stops.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from bench.drift.page import MOST_FALSE, MOST_OVERHEAD, markdown
from bench.drift.serving import overhead
from bench.drift.weeks import Plan, of_task, served
from bench.harness.command import DATA, WORK, command_line, command_of, datasets_there
from bench.harness.report import made_by, report
from bench.heldout.families import families, held_out
from bench.heldout.features import encoder_features
from bench.heldout.material import Cell, opened
from bench.heldout.plan import AS_THEY_COME, READOUT, ArmRun
from bench.transfer.material import read
from onboard.domain.dataset import Dataset, Example

_STRANGE = 400  # rows of another task


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and write the page."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    asked = _asked(words)
    if not datasets_there(asked.data, "--data", ["wide"]):
        return 0
    torch.set_num_threads(1)
    folder, place, plan = asked.data / "wide", opened(asked.base), Plan(draws=asked.draws, orders=asked.orders)
    features = encoder_features(place, WORK / "heldout" / "features")
    width, of_task_family = int(place.engine.backbone.config.d_model), families(folder)
    chosen = _chosen(folder, asked.tasks, plan)
    lines: list[dict[str, Any]] = []
    for at, (task, whole) in enumerate(chosen):
        others = [(name, one) for name, one in chosen[at + 1 :] + chosen[:at] if _apart(whole, one)]
        others = [one for one in others if of_task_family.get(one[0]) != of_task_family.get(task)] or others
        others = [one for one in others if _source(one[0]) != _source(task)] or others
        if not others:
            continue
        name, other = others[0]
        lines += of_task(place, task, whole, (name, _rows(other)[:_STRANGE]), features, plan)
        print(f"{task}: {len(lines)} lines", flush=True)
    serving = []
    if asked.rounds:
        timed = next(task for task in chosen if not task[1].pairs)
        cell = Cell(place, timed[1], ArmRun(timed[0], 200, 0, READOUT, AS_THEY_COME))
        serving = overhead(cell, served(cell, features, width), asked.rounds)
    false = [line[week] != 0 for line in lines for week in ("first", "second")]
    kept = sum(false) <= MOST_FALSE * len(false) and all(line["overhead"] <= MOST_OVERHEAD for line in serving)
    document = {
        **made_by(command_of("drift", words)), "week": plan.week, "lines": lines, "serving": serving, "kept": kept,
    }  # fmt: skip
    return report(document, asked, markdown)


def _chosen(folder: Path, most: int, plan: Plan) -> list[tuple[str, Dataset]]:
    """Held-out tasks with classes that have enough rows for two weeks in addition to the training rows."""
    chosen = []
    for task in held_out(folder):
        whole = read(folder / task)
        enough = len({(row.text_a, row.text_b) for row in _rows(whole)}) >= 2 * plan.week + max(plan.rows)
        if whole.kind == "classification" and enough:
            chosen.append((task, whole))
        if len(chosen) == most:
            break
    return chosen


def _source(task: str) -> str:
    """The first word of a name. Tasks that share it ask different questions about the same texts."""
    return task.split("_")[0]


def _rows(whole: Dataset) -> Sequence[Example]:
    return [*whole.train, *whole.test]


def _apart(one: Dataset, other: Dataset) -> bool:
    """Whether texts of one can stand among those of the other: both have one text, or both two."""
    return one.pairs == other.pairs


def _asked(words: Sequence[str]) -> argparse.Namespace:
    parser = command_line(__doc__, "drift")
    parser.add_argument("--base", default="mini", help="name or folder")
    parser.add_argument("--data", type=Path, default=DATA, help="folder with wide/")
    parser.add_argument("--tasks", type=int, default=12, help="at most so many")
    parser.add_argument("--draws", type=int, default=3, help="of the training rows, for each number of them")
    parser.add_argument("--orders", type=int, default=5, help="of the other rows, for each draw")
    parser.add_argument("--rounds", type=int, default=15, help="of the comparison of serving; 0 leaves it out")
    return parser.parse_args(words)


if __name__ == "__main__":
    sys.exit(main())
