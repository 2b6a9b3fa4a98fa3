"""How an embedding is best trained on few rows, measured on the source tasks, each learned as if it were new.

    python -m bench.recipes --work FOLDER [--part 0 --parts 2] [--shots 16 32 100] [--draws 3] [--tasks sst2 …]
    python -m bench.recipes --work FOLDER --table [--output docs/results/recipes.md]

The task's own embedding and the made tasks that bear its name are not among the candidates of its probe (the head has
seen it all the same). A recipe is a learning rate, a pull towards the start, a number of steps, how many orders of the
batches are averaged, how far the result is shrunk back to its start (each α, and the α of least out-of-fold loss), and
a penalty of constants per label that are fitted out of fold. One training gives all but the first two.

Every training leaves a line of JSON in FOLDER; what is there is not done again. Parts may run at the same time.
Needs the datasets beside the checkout (../shared/data); says so and stops where they are missing.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch

from bench.as_if_new import candidates, drawn_tests
from bench.budgeted import DATA, datasets_there, end_last_line, finished
from bench.calibration import calibrated, cross_calibrated, fit_offsets
from bench.recipe_table import page
from onboard.bases import Base, find_base
from onboard.bases.load import load_engine
from onboard.data.read import ReadOptions, read_dataset
from onboard.data.splits import fair_order, holdout
from onboard.model.batched import log_probabilities
from onboard.model.engine import Engine
from onboard.model.memory import RowsAtOnce
from onboard.model.scoring import LabelTrie
from onboard.model.side_by_side import AT_ONCE, Moved, Run, Steps, train_side_by_side
from onboard.probe.candidates import random_candidate
from onboard.probe.choice import ProbeSettings, choose
from onboard.probe.evaluator import Evaluator
from onboard.train.crossvalidation import Fold, held_out_scores, mean_loss, part_rows
from onboard.train.fewshot import FewShotSettings, batches
from onboard.workbench import Workbench, label_words

TASKS: Final = ("sst2", "mrpc", "qqp", "mnli", "qnli", "rte", "cola")
TRAININGS: Final = ((0.03, 0.0), (0.1, 0.0), (0.1, 0.01))  # learning rate and pull
CHECKPOINTS: Final = (20, 40)  # steps
ALPHAS: Final = (0.0, 0.25, 0.5, 0.75, 1.0)
PENALTIES: Final = (None, 0.5, 2.0)  # of the constants per label
SHOTS: Final = (16, 32, 100)
DRAWS: Final = 3
SEEDS: Final = 3
BATCH: Final = 8
TEST_ROWS: Final = 300


@dataclass(frozen=True)
class Cell:
    """A task as if it were new, one draw of its rows, and where training starts."""

    task: str
    shots: int
    draw: int
    start: str

    def key(self, rate: float, pull: float, settings: Sequence[Any]) -> list[Any]:
        """What tells one training from all others."""
        return [self.task, self.shots, self.draw, self.start, rate, pull, *settings]


@dataclass(frozen=True)
class Material:
    """What a cell is trained and tested on: a start (t,), its trie, the folds, and encoded rows with their truth."""

    start: np.ndarray
    trie: LabelTrie
    parted: Sequence[Fold]
    ids: Sequence[Sequence[int]]
    targets: np.ndarray
    test_ids: Sequence[Sequence[int]]
    test_targets: np.ndarray
    chosen: str


def main() -> int:
    """Measure what is missing, or print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--part", type=int, default=0)
    parser.add_argument("--parts", type=int, default=1)
    parser.add_argument("--base", default="mini")
    parser.add_argument("--tasks", nargs="*", default=list(TASKS), choices=TASKS)
    parser.add_argument("--shots", nargs="*", type=int, default=list(SHOTS))
    parser.add_argument("--draws", type=int, default=DRAWS)
    parser.add_argument("--starts", nargs="*", default=["auto", "random"], choices=("auto", "random"))
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--table", action="store_true", help="print what was measured, and measure nothing")
    parser.add_argument("--output", type=Path, help="write the table there too")
    asked = parser.parse_args()
    asked.work.mkdir(parents=True, exist_ok=True)
    if asked.table:
        text = page(read(asked.work), Counter(cell.start for cell in grid(TASKS, SHOTS, DRAWS)))
        print(text)
        if asked.output:
            asked.output.write_text(text, encoding="utf-8")
        return 0
    if not datasets_there():
        return 0
    torch.set_num_threads(asked.threads)
    base = find_base(asked.base)
    engine = load_engine(base, "cpu")
    cells = [cell for cell in grid(asked.tasks, asked.shots, asked.draws) if cell.start in asked.starts]
    cells = cells[asked.part :: asked.parts]
    run(base, engine, cells, asked.work, asked.work / f"{asked.part}-of-{asked.parts}.jsonl")
    return 0


def grid(tasks: Sequence[str], shots: Sequence[int], draws: int) -> Iterator[Cell]:
    """The cells, the first draws of all tasks first; a random start is measured on the first draw only."""
    for draw in range(draws):
        for count in shots:
            for task in tasks:
                yield Cell(task, count, draw, "auto")
                if draw == 0:
                    yield Cell(task, count, draw, "random")


def read(folder: Path) -> list[dict[str, Any]]:
    """All that was measured; a last line that is not whole does not count."""
    return [row for path in sorted(folder.glob("*.jsonl")) for row in finished(path)]


def run(base: Base, engine: Engine, cells: Sequence[Cell], folder: Path, output: Path) -> None:
    """Measure what no line of the folder holds; the lines go to `output`."""
    done, settings = [row["key"] for row in read(folder)], settings_of(base)
    end_last_line(output)
    for cell in cells:
        missing = [training for training in TRAININGS if cell.key(*training, settings) not in done]
        material = prepare(base, engine, cell) if missing else None
        for rate, pull in missing:
            assert material is not None
            started = time.monotonic()
            row: dict[str, Any] = {
                "key": cell.key(rate, pull, settings), "chosen": material.chosen, "rows": len(material.ids),
                "variants": measure(engine, material, rate, pull, cell.draw),
                "seconds": round(time.monotonic() - started, 1),
            }  # fmt: skip
            with output.open("a", encoding="utf-8") as stream:
                stream.write(json.dumps(row) + "\n")
            print(*row["key"][:6], row["chosen"], row["seconds"], flush=True)


def settings_of(base: Base) -> list[Any]:
    """What the numbers depend on beside the cell and the training, as it will be read again."""
    found: list[Any] = json.loads(json.dumps([base.digest, asdict(ProbeSettings()), asdict(FewShotSettings())]))
    return found


def prepare(base: Base, engine: Engine, cell: Cell) -> Material:
    """Draw the rows, hold out as a job does, probe, part."""
    folder = DATA / "source" / cell.task
    options = ReadOptions(test=folder / "test.jsonl.gz", shots=cell.shots, seed=cell.draw, suspects=False)
    dataset = holdout(read_dataset(folder / "train.jsonl.gz", options).dataset, cell.draw)
    bench = Workbench(base, engine, dataset, label_words(dataset, engine))
    ids, targets = bench.encode(dataset.train), bench.targets(dataset.train)
    start, words, chosen = (
        random_candidate(int(base.document["task_embedding_size"]), cell.draw).z,
        bench.words,
        "random",
    )
    if cell.start == "auto":
        evaluator = Evaluator(engine, ids, targets, bench.words, bench.hashes(dataset.train), mapped=True)
        order = np.array(fair_order(dataset, cell.draw))
        offered = candidates(base, cell.draw, cell.task, bench.fingerprint(ids, targets))
        probed = choose(evaluator, offered, order, ProbeSettings())
        start, words, chosen = probed.z, probed.chosen.words, probed.chosen.embedding
    test = drawn_tests(dataset, TEST_ROWS)
    return Material(
        start, engine.trie(words), part_rows(dataset, cell.draw), ids, targets, bench.encode(test),
        bench.targets(test), chosen,
    )  # fmt: skip


def measure(engine: Engine, material: Material, rate: float, pull: float, seed: int) -> list[dict[str, Any]]:
    """Out-of-fold and test scores of everything that one training gives."""
    everything = np.arange(len(material.ids))
    parts = [(everything, number) for number in range(SEEDS)] + [(fold.kept, 0) for fold in material.parted]
    settings = FewShotSettings(steps=max(CHECKPOINTS), batch=BATCH)
    runs = [
        Run(material.start, material.trie, [rows[b] for b in batches(_lengths(material, rows), settings, seed, number)])
        for rows, number in parts
    ]
    steps = Steps(rate, pull)
    moved = train_side_by_side(engine, runs, material.ids, material.targets, steps, at_once=RowsAtOnce(AT_ONCE))
    found: list[dict[str, Any]] = []
    for count in CHECKPOINTS:
        trained = [averaged(each, count, steps.averaged_share) for each in moved]
        of_folds = trained[SEEDS:]
        for seeds, alpha in [*((SEEDS, alpha) for alpha in ALPHAS), (1, 1.0)]:
            if alpha == 0.0 and count != CHECKPOINTS[0]:
                found += [{**each, "steps": count} for each in found if each["alpha"] == 0.0]
                continue
            scores = _held_out(engine, material, [_shrunk(material.start, z, alpha) for z in of_folds])
            z = _shrunk(material.start, np.mean(trained[:seeds], axis=0), alpha)
            tested = log_probabilities(engine, material.test_ids, z, material.trie)
            what = {"steps": count, "seeds": seeds, "alpha": alpha}
            found += [{**what, **each} for each in judged(material, scores, tested)]
    return found


def _lengths(material: Material, rows: np.ndarray) -> list[int]:
    return [len(material.ids[row]) for row in rows]


def averaged(moved: Moved, steps: int, share: float) -> np.ndarray:
    """What the training would have given, had it ended after so many steps: (t,)."""
    last: np.ndarray = moved.course[steps - max(1, round(steps * share)) : steps].mean(0)
    return last


def _shrunk(start: np.ndarray, trained: np.ndarray, alpha: float) -> np.ndarray:
    shrunk: np.ndarray = (start + alpha * (trained - start)).astype(np.float32)
    return shrunk


def _held_out(engine: Engine, material: Material, z: Sequence[np.ndarray]) -> np.ndarray:
    return held_out_scores(engine, material.ids, material.parted, z, material.trie)


def judged(material: Material, scores: np.ndarray, tested: np.ndarray) -> Iterator[dict[str, Any]]:
    """Loss (nats) and accuracy out of fold and on the test rows, with constants of every penalty."""
    fold = np.zeros(len(material.ids), dtype=np.int64)
    for number, each in enumerate(material.parted):
        fold[each.held] = number
    for penalty in PENALTIES:
        offsets = None if penalty is None else fit_offsets(scores, material.targets, penalty)
        out, test = cross_calibrated(scores, material.targets, fold, penalty), calibrated(tested, offsets)
        yield {
            "penalty": penalty,
            "fold_loss": round(mean_loss(out, material.targets), 5),
            "fold_accuracy": round(_accuracy(out, material.targets), 5),
            "test_loss": round(mean_loss(test, material.test_targets), 5),
            "test_accuracy": round(_accuracy(test, material.test_targets), 5),
        }


def _accuracy(scores: np.ndarray, targets: np.ndarray) -> float:
    return float((scores.argmax(1) == targets.argmax(1)).mean())


if __name__ == "__main__":
    sys.exit(main())
