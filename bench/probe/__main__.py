"""Costs and losses of the probe with 10 to 10,000 embeddings to choose among, on source tasks learned as if new.

    python -m bench.probe --work FOLDER [--tasks sst2 …] [--draws 2] [--output bench/results/probe.json]
                          [--table bench/results/probe.md]

The embeddings are the base's own, mixtures of two of them, and perturbed ones (`bench/probe/pool.py`); the task's own,
and what bears its name, is not among them. The probe is timed as a job runs it: fingerprint, prefilter, race, last
round. For comparison every embedding is measured on all rows (up to --exhaustive of them), and a few one by one, as a
probe without batches would, to measure that cost. Both choices are trained as a job trains, with the folds that say how
much of the way is taken; the regret is what the probe's choice is worse by on test rows.

Every task and draw leaves a line of JSON in FOLDER; existing results are kept.
Needs the datasets next to the checkout (../shared/data); says so and stops where they are missing.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch

from bench.harness.as_a_job import SETTINGS, STEP, Lesson
from bench.harness.as_if_new import drawn_tests, workbench
from bench.harness.command import DATA, command_line, command_of, datasets_there
from bench.harness.figures import accuracy
from bench.harness.report import made_by, report
from bench.harness.rows import Row, append, finished, plain
from bench.probe import registry
from bench.probe.page import page
from bench.probe.pool import Known, own, pool
from onboard.bases import Base, find_base
from onboard.bases.load import load_engine
from onboard.data.limits import PROBE_TOKENS
from onboard.data.read import ReadOptions, read_dataset
from onboard.data.splits import fair_order
from onboard.domain.init import FINGERPRINT
from onboard.model.batched import log_probabilities
from onboard.pipeline.material import Workbench
from onboard.probe.candidates import Candidate, ProbeResult, mean_candidate, random_candidate
from onboard.probe.choice import choose
from onboard.probe.evaluator import Evaluator, ProbedTask
from onboard.probe.prefilter import prefilter
from onboard.probe.settings import ProbeSettings

TASKS: Final = ("sst2", "mrpc", "qqp", "mnli", "qnli", "rte", "cola")
SIZES: Final = (10, 100, 1_000, 10_000)
EXHAUSTIVE: Final = 1_000
SAMPLED: Final = 20  # embeddings that are measured one by one
TEST_ROWS: Final = 500
REGISTRY: Final = "registry"


@dataclass
class Cell:
    """A source task as if it were new, with one draw of its rows; training is done once for every start.

    Args:
        bench: the task's rows and the model.
        ids, targets: of the rows in the fair order.
        probed_ids: of the beginnings of these rows, which are all that a job's probe reads.
        test_ids, test_targets: of the test rows.
        draw: seed of everything.
    """

    bench: Workbench
    ids: list[list[int]]
    targets: np.ndarray
    probed_ids: list[list[int]]
    test_ids: list[list[int]]
    test_targets: np.ndarray
    hashes: np.ndarray
    draw: int
    _tested: dict[bytes, tuple[float, float]] = field(default_factory=dict)

    def evaluator(self) -> Evaluator:
        """A fresh one, to which nothing is known."""
        task = ProbedTask(self.probed_ids, self.targets, self.bench.words, self.hashes, mapped=True)
        return Evaluator(self.bench.engine.rounded(), task, self.bench.execution())

    def fingerprint(self) -> np.ndarray:
        """The fingerprint of the rows (t,)."""
        return self.bench.fingerprint(self.ids, self.targets)

    def tested(self, probed: ProbeResult) -> tuple[float, float]:
        """Accuracy in per cent and log-loss in nats on the test rows, after a job's training from the choice."""
        words = probed.chosen.words
        key = probed.z.tobytes() + repr(words).encode()
        if key not in self._tested:
            engine, trie = self.bench.engine, self.bench.engine.trie(words)
            rows = self.bench.labelled(self.bench.dataset.train)
            lesson = Lesson(engine, self.bench, rows, probed.z, trie, self.draw)
            scores = log_probabilities(engine, self.test_ids, lesson.z, trie)
            right = accuracy(scores, self.test_targets)
            self._tested[key] = 100 * right, -float((self.test_targets * scores).sum(1).mean())
        return self._tested[key]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the missing measurements; print and write the findings."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    parser = command_line(__doc__)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--base", default="mini")
    parser.add_argument("--tasks", nargs="*", default=list(TASKS))
    parser.add_argument("--draws", type=int, default=2)
    parser.add_argument("--shots", type=int, default=32)
    parser.add_argument("--sizes", nargs="*", type=int, default=list(SIZES))
    parser.add_argument("--exhaustive", type=int, default=EXHAUSTIVE, help="most embeddings that are all measured")
    parser.add_argument("--data", type=Path, default=DATA / "source")
    parser.add_argument("--threads", type=int, default=2)
    asked = parser.parse_args(words)
    if not datasets_there(asked.data):
        return 0
    torch.set_num_threads(asked.threads)
    base = find_base(asked.base)
    document = {
        **made_by(command_of("probe", words)), "base": base.digest, "shots": asked.shots,
        "exhaustive": asked.exhaustive, "rows": run(base, asked),
    }  # fmt: skip
    return report(document, asked, page)


def run(base: Base, asked: argparse.Namespace) -> list[Row]:
    """Everything requested, in that order; missing ones are measured and added."""
    output = asked.work / "probe.jsonl"
    done = {json.dumps(row["key"]): row for row in finished(output)}
    settings = plain([asdict(ProbeSettings()), PROBE_TOKENS, asdict(SETTINGS), STEP])
    rows = []
    for draw in range(asked.draws):
        for task in asked.tasks:
            key = [base.digest, task, asked.shots, draw, asked.sizes, asked.exhaustive, settings]
            rows.append(_once(done, output, key, partial(measure, base, asked, task, draw)))
    for size in asked.sizes:
        key = [base.digest, REGISTRY, size]
        known = pool(base, "", size)
        rows.append(_once(done, output, key, partial(registry.measure, base, known)))
    return rows


def _once(done: dict[str, Row], output: Path, key: list[Any], work: Callable[[], Row]) -> Row:
    if json.dumps(key) not in done:
        started = time.monotonic()
        row = {"key": key, **work(), "seconds": round(time.monotonic() - started, 1)}
        append(output, row)
        print(*key[1:], row["seconds"], "s", file=sys.stderr, flush=True)
        return row
    return done[json.dumps(key)]


def measure(base: Base, asked: argparse.Namespace, task: str, draw: int) -> Row:
    """One task and draw: the probe at every size, and what it is compared with."""
    cell = prepare(base, asked.data / task, asked.shots, draw)
    known = pool(base, task, max(asked.sizes))
    mean = mean_candidate([start.candidate.z for start in own(base, task)])
    plain = [random_candidate(len(known[0].candidate.z), draw), mean]
    everything = cell.evaluator()  # what it has measured for a smaller size is not measured again
    probed(cell, known[:1], plain)  # slow only the first time
    sizes, best = [], None
    for size in sorted(asked.sizes):
        row = probed(cell, known[:size], plain)
        if size <= asked.exhaustive:
            offered = [*(start.candidate for start in known[:size]), *plain, Candidate(FINGERPRINT, cell.fingerprint())]
            best = choose(everything, offered, np.arange(len(cell.ids)), ProbeSettings(exhaustive=True))
        if best is not None:  # of more embeddings than are measured: the best of the most that are
            test_accuracy, loss = cell.tested(best)
            row |= {"best": best.chosen.embedding, "best_accuracy": test_accuracy, "best_loss": loss}
        sizes.append({"size": size, **row})
    return {"sizes": sizes, "one_by_one_cpu_seconds": _one_by_one(cell, known[:SAMPLED])}


def prepare(base: Base, folder: Path, shots: int, draw: int) -> Cell:
    """Draw the rows of a task, and its test rows."""
    options = ReadOptions(test=folder / "test.jsonl.gz", shots=shots, seed=draw, suspects=False)
    dataset = read_dataset(folder / "train.jsonl.gz", options).dataset
    engine = load_engine(base, "cpu")
    bench = workbench(base, engine, dataset)
    rows = [dataset.train[row] for row in fair_order(dataset, draw)]
    test = drawn_tests(dataset, TEST_ROWS)
    return Cell(
        bench, bench.encode(rows), bench.targets(rows), bench.encode(rows, PROBE_TOKENS), bench.encode(test),
        bench.targets(test), bench.hashes(rows), draw,
    )  # fmt: skip


def probed(cell: Cell, known: Sequence[Known], plain: Sequence[Candidate]) -> Row:
    """The probe as a job runs it."""
    started, cpu = time.monotonic(), time.process_time()
    fingerprint = cell.fingerprint()
    nearest = prefilter(fingerprint, [start.fingerprint for start in known])
    offered = [*(known[index].candidate for index in nearest), *plain, Candidate(FINGERPRINT, fingerprint)]
    evaluator = cell.evaluator()
    choice = choose(evaluator, offered, np.arange(len(cell.ids)))
    seconds, cpu = time.monotonic() - started, time.process_time() - cpu
    test_accuracy, loss = cell.tested(choice)
    return {
        "measured": len(offered), "seconds": round(seconds, 3), "cpu_seconds": round(cpu, 3),
        "passes": len(cell.ids) + evaluator.passes,  # those of the fingerprint, too
        "trained": evaluator.trained, "chosen": choice.chosen.embedding, "alarm": choice.alarm,
        "accuracy": test_accuracy, "loss": loss,
    }  # fmt: skip


def _one_by_one(cell: Cell, known: Sequence[Known]) -> float:
    """Seconds of CPU for one embedding, measured alone on all rows."""
    evaluator, rows = cell.evaluator(), np.arange(len(cell.ids))
    started = time.process_time()
    for embedding in known:
        evaluator.measure([embedding.candidate], rows)
    return round((time.process_time() - started) / len(known), 4)


if __name__ == "__main__":
    sys.exit(main())
