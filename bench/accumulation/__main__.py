"""The benefit of every earlier task for a new one of few rows.

    python -m bench.accumulation [--kinds readout,default] [--rows 4,16] [--counts 0,127] [--part 1/2] [--hours 4]
                                 [--report]

Readouts are fitted in closed form: seconds each once the texts are read. With `--kinds default` whole jobs run, about a
minute each. Finished runs stand in --output: the same command goes on where it was stopped, and several processes may
share it. The page is written from what the file holds. The tasks are next to the checkout (../shared/data) or in
--data; where they are missing it says so and stops.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch

from bench.accumulation.arms import Arms
from bench.accumulation.page import AccumulationFacts, markdown
from bench.accumulation.plan import COUNTS, DEFAULT, KINDS, READOUT, ROWS, Wish, parts_of, plan
from bench.harness.command import DATA, WORK, add_shared, command_line, command_of, datasets_there, require_names
from bench.harness.earlier_tasks import lessons_digest, source_lessons
from bench.harness.report import write
from bench.harness.rows import Row
from bench.heldout.families import families, held_out
from bench.heldout.features import encoder_features
from bench.heldout.figures import Results
from bench.heldout.material import TEST_ROWS, LoadedBase, opened, rarest_label
from bench.heldout.measures import measured
from bench.heldout.plan import DRAWS, ArmRun, listed, numbers, part_of
from bench.heldout.settings import PRIOR_SETTINGS, READOUT_SETTINGS, digest, job_settings
from bench.heldout.sharing import Settings, run_missing, runs_of
from onboard.errors import InputError

SUITES = ("source", "wide")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the missing measurements of the part, and write the page."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    asked = _asked(words)
    if not datasets_there(asked.data, "--data", SUITES):
        return 0
    torch.set_num_threads(asked.threads)
    place, folder = opened(asked.base, asked.device), asked.data / "wide"
    rarest = {task: rarest_label(folder / task) for task in held_out(folder)}
    tasks = [task for task, share in rarest.items() if share < 1]  # the others request a number
    runs = plan(tasks, Wish(asked.kinds, asked.counts, asked.rows, asked.draws, asked.tasks))
    settings = settings_of(place, runs)
    if not asked.report:
        _measure(place, part_of(runs, *asked.part), settings, rarest, asked)
    rows = runs_of(runs, settings, asked.output)
    missing = [run for run in runs if run not in rows]
    sources, draws = len(place.base.sources), len(asked.draws)
    facts = AccumulationFacts(command_of("accumulation", words), place.base.name, draws, TEST_ROWS, missing, sources)
    write({}, None, markdown(Results(rows), facts), asked.table)
    print(f"{len(rows)} of {len(runs)} runs; {asked.table}")
    return 0


def settings_of(place: LoadedBase, runs: Sequence[ArmRun]) -> dict[str, Row]:
    """The settings that the numbers of each arm depend on, in addition to task and rows."""
    of_prior = digest([PRIOR_SETTINGS, READOUT_SETTINGS])
    shared: Row = {"base": place.base_digest, "lessons": lessons_digest(place.base), "test_rows": TEST_ROWS}
    whole = {"job": job_settings()}
    return {
        arm: {**shared, "prior": of_prior, **(whole if parts_of(arm)[0] == DEFAULT else {})}
        for arm in {run.arm for run in runs}
    }


def _measure(
    place: LoadedBase,
    runs: Sequence[ArmRun],
    settings: Settings,
    rarest: Mapping[str, float],
    asked: argparse.Namespace,
) -> None:
    there = runs_of(runs, settings, asked.output)
    missing = [run for run in runs if run not in there]
    features = encoder_features(place, WORK / "heldout" / "features")
    readouts = any(parts_of(run.arm)[0] == READOUT for run in missing)
    lessons = source_lessons(place, asked.data, features) if readouts else {}
    arms = Arms(place, asked.data / "wide", lessons, features, WORK / "accumulation" / str(os.getpid()))
    of_task = families(asked.data / "wide")

    def measure(run: ArmRun) -> Row:
        facts: Row = {"family": of_task.get(run.task, ""), "rarest": round(rarest[run.task], 4)}
        try:
            learned = arms.answer(run)
        except InputError as error:
            return {**facts, "reason": error.message, "seconds": 0.0}
        figures = measured(arms.cells.of(run), learned.answers)
        return {**facts, **figures, **learned.facts, "seconds": round(learned.seconds, 2)}

    run_missing(runs, measure, settings, asked.output, asked.hours)


def _asked(words: Sequence[str]) -> argparse.Namespace:
    parser = command_line(__doc__, "accumulation", "jsonl")
    add_shared(parser)
    parser.add_argument("--base", default="mini", help="name or folder")
    parser.add_argument("--device", default="cpu", help="cpu, cuda or cuda:N")
    parser.add_argument("--data", type=Path, default=DATA, help="folder with source/ and wide/")
    parser.add_argument("--kinds", type=listed, default=(READOUT,), metavar="A,B", help=", ".join(KINDS))
    parser.add_argument("--tasks", type=listed, default=(), metavar="A,B", help="only these held-out tasks")
    parser.add_argument("--counts", type=numbers, default=COUNTS, metavar="0,127", help="tasks learned before")
    parser.add_argument("--rows", type=numbers, default=ROWS, metavar="4,16", help="labelled rows of the new task")
    parser.add_argument("--draws", type=numbers, default=DRAWS, metavar="0,1,2", help="seeds of the draws")
    parser.add_argument("--hours", type=float, help="after which no further run begins")
    asked = parser.parse_args(words)
    require_names(parser, "kind", asked.kinds, KINDS)
    return asked


if __name__ == "__main__":
    sys.exit(main())
