"""How an embedding is best trained on few rows: on kinds of tasks that the base knows, and on others.

    python -m bench.recipes [--part 1/2] [--shots 32] [--draws 2] [--tasks sst2 …] [--rivals] [--report]

Known are the source tasks, each learned as if it were new: its own embedding and the made tasks that bear its name are
not among the candidates of its probe (the head has seen it all the same). Unseen are the kinds of
`bench.harness.unseen`. The targets have no say. One training tells what every share of the way from the start gives,
and which of them the rows would have chosen that were predicted without themselves, as the service has it. With
--rivals other steps and batches are tried in addition to the service's.

Every training leaves a line of JSON in --output; existing results are kept; several processes may share the work,
each with its own --part. Needs the datasets next to the checkout (../shared/data); says so and stops where they are
missing.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, astuple, dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch

from bench.harness.command import DATA, add_shared, command_line, command_of, datasets_there, part_of
from bench.harness.figures import accuracy
from bench.harness.report import write
from bench.harness.rows import Rows, plain
from bench.harness.unseen import KINDS, SEEN, make, read_rows
from bench.recipes.page import OWN_TRAINING, Training, page
from bench.transfer.cells import AUTO
from bench.transfer.material import SETTINGS as PROBE
from bench.transfer.material import Cell as Material
from bench.transfer.material import read
from onboard.bases import Base, find_base
from onboard.data.splits import shots
from onboard.domain.dataset import Dataset
from onboard.model.batch import TrainingSet
from onboard.model.batched import log_probabilities
from onboard.train.crossvalidation import held_out_scores, mean_loss, part_rows
from onboard.train.fewshot import Part, train_parts
from onboard.train.settings import SHARES, FewShotSettings

KNOWN: Final = ("sst2", "mrpc", "qnli", "mnli", "cola", "qqp", "rte")
UNSEEN: Final = tuple(kind for kind in KINDS if kind not in SEEN)
RIVALS: Final[tuple[Training, ...]] = ((20, 8, 0.2), (60, 8, 0.2), (40, 4, 0.2))
TEST_ROWS: Final = 300


@dataclass(frozen=True)
class Cell:
    """A task as if it were new, one draw of its rows, and how it is trained."""

    task: str
    shots: int
    draw: int
    steps: int
    batch: int
    rate: float


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the missing measurements of the part, and write the page."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    asked = _parser().parse_args(words)
    if not datasets_there():
        return 0
    torch.set_num_threads(asked.threads)
    base = find_base(asked.base)
    trainings = [OWN_TRAINING, *(RIVALS if asked.rivals else ())]
    cells = list(grid(asked.tasks, asked.shots, asked.draws, trainings))
    if not asked.report:
        run(base, part_of(cells, *asked.part), asked.output)
    rows = [row for row in Rows(asked.output, settings_of(base)) if Cell(**row["cell"]) in cells]
    write({}, None, page(rows, len(cells), command_of("recipes", words), UNSEEN), asked.table)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = command_line(__doc__, "recipes", "jsonl")
    add_shared(parser)
    tasks = (*KNOWN, *UNSEEN)
    parser.add_argument("--base", default="mini")
    parser.add_argument("--tasks", nargs="*", default=list(tasks), choices=tasks, metavar="NAME")
    parser.add_argument("--shots", nargs="*", type=int, default=[32], help="labelled rows, 64 at most")
    parser.add_argument("--draws", type=int, default=2)
    parser.add_argument("--rivals", action="store_true", help="other trainings too")
    return parser


def grid(tasks: Sequence[str], counts: Sequence[int], draws: int, trainings: Sequence[Training]) -> Iterator[Cell]:
    """The cells, the first draws of all tasks first."""
    for draw, count, training, task in product(range(draws), counts, trainings, tasks):
        yield Cell(task, count, draw, *training)


def run(base: Base, cells: Sequence[Cell], output: Path) -> None:
    """Measure what the file does not hold under these settings."""
    rows = Rows(output, settings_of(base))
    for cell in cells:
        if any(Cell(**row["cell"]) == cell for row in rows):
            continue
        started = time.process_time()
        row = measure(base, cell) | {"seconds": round(time.process_time() - started, 1)}
        rows.add({"cell": asdict(cell), **row})
        print(*astuple(cell), row["chosen"], row["seconds"], flush=True)


def settings_of(base: Base) -> dict[str, Any]:
    """The settings that the numbers depend on, in addition to the cell."""
    own = asdict(FewShotSettings())
    for name in ("steps", "batch", "learning_rate"):  # a cell says them
        del own[name]
    settings: dict[str, Any] = plain(
        {"base": base.digest, "probe": asdict(PROBE), "training": own, "test_rows": TEST_ROWS}
    )
    return settings


def measure(base: Base, cell: Cell) -> dict[str, Any]:
    """Out of fold and on the test rows: the start ("0"), and every share of the way from it."""
    dataset = dataset_of(cell)
    material = Material(base, cell.task, dataset, cell.draw, TEST_ROWS)
    begun, engine, rows = material.start(AUTO), material.bench.engine, material.own
    start, trie, parted = begun.z.astype(np.float32), engine.trie(begun.words), part_rows(dataset, cell.draw)
    settings = replace(FewShotSettings(), steps=cell.steps, batch=cell.batch, learning_rate=cell.rate)
    everything, targets = np.arange(len(rows.ids)), material.bench.targets(material.test)
    parts = [Part(everything, settings.seeds), Part(everything, 1), *(Part(fold.kept, 1) for fold in parted)]
    trained = train_parts(engine.rounded(), TrainingSet(rows, trie), start, settings, cell.draw, parts)

    def judged(share: float) -> dict[str, Any]:
        whole, single, *folds = (embedding.shortened(start, share).z for embedding in trained)
        out_of_fold = held_out_scores(engine, rows.ids, parted, folds, trie)
        tested, of_single = (log_probabilities(engine, material.test_ids, z, trie) for z in (whole, single))
        return {
            "fold_losses": [round(float(loss), 4) for loss in -(rows.targets * out_of_fold).sum(1)],  # of each row
            "test_loss": mean_loss(tested, targets),
            "fold_accuracy": accuracy(out_of_fold, rows.targets), "test_accuracy": accuracy(tested, targets),
            "one_order": accuracy(of_single, targets),
        }  # fmt: skip

    by_share = {f"{share:g}": judged(share) for share in (0.0, *SHARES)}
    return {"chosen": begun.embedding, "rows": len(rows.ids), "by_share": by_share}


def dataset_of(cell: Cell) -> Dataset:
    """So many labelled rows of the task, and its test rows."""
    folder = DATA / "source"
    if cell.task in KNOWN:
        return shots(read(folder / cell.task), cell.shots, cell.draw)
    return shots(make(cell.task, read_rows(folder, "validation"), TEST_ROWS), cell.shots, cell.draw)


if __name__ == "__main__":
    sys.exit(main())
