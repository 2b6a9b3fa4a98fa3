"""Tasks that nothing was trained on: what the default publishes, compared with alternatives for the same rows.

    python -m bench.heldout [--arms default,readout] [--rows 16,32] [--part 1/2] [--hours 4] [--report]
    python -m bench.heldout --encoder --base FOLDER [--draws 0]
    python -m bench.heldout --suite targets

Finished runs stand in --output: repeat the command to resume; several processes may share the work, each
with its own --part. The page is written from what the file holds, whatever is missing. With --encoder only what
needs no training is measured (features of the encoder and of MiniLM, TF-IDF, the readout): it judges a base, or a
folder with a bare backbone, in minutes, prints its tables, and leaves file and page alone. The held-out tasks, which
designs are chosen by, are next to the checkout (../shared/data/wide), and so do the seven targets, which never choose
one (../shared/data/target), or in --data; where they are missing it says so and stops.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path

import torch

from bench.harness.command import (
    DATA,
    PAGES,
    RESULTS,
    WORK,
    add_shared,
    command_line,
    command_of,
    datasets_there,
    require_names,
)
from bench.harness.report import write
from bench.harness.rows import Row
from bench.heldout.arms import Arms, readers_of
from bench.heldout.families import Families, families, held_out
from bench.heldout.figures import Results
from bench.heldout.material import TEST_ROWS, Cells, LoadedBase, opened, rarest_label
from bench.heldout.measures import measured
from bench.heldout.page import HeldOutFacts, encoder_lines, markdown
from bench.heldout.plan import (
    ARMS,
    CHEAP,
    DEFAULT,
    DRAWS,
    OF_TEACHER,
    READ_OUT,
    SETFIT,
    ArmRun,
    Wish,
    listed,
    part_of,
    plan,
)
from bench.heldout.setfit_process import SetFit, installed
from bench.heldout.settings import settings_of
from bench.heldout.sharing import Settings, run_missing, runs_of
from bench.heldout.suites import HELD_OUT, SUITES
from onboard.errors import InputError, NotFoundError
from onboard.making.pretrain.teacher import model_folder

QUICK_ROWS = "16,32"  # of --encoder
PLACE = WORK / "heldout"  # the features, and the runs of --encoder
ENVIRONMENT = WORK / "setfit"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the missing measurements of the part, and write the page."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    asked = _asked(words)
    if not datasets_there(asked.data, "--data"):
        return 0
    torch.set_num_threads(asked.threads)
    place = opened(asked.base, asked.device)
    if place.bare and not asked.encoder:
        print("a bare backbone has no hypernetwork: --encoder measures what needs none")
        return 2
    rarest = {task: rarest_label(asked.data / task) for task in held_out(asked.data)}
    runs, settings = plan(rarest, Wish(asked.tasks, asked.arms, asked.rows, asked.draws)), settings_of(place)
    if not asked.report:
        _measure(place, part_of(runs, *asked.part), settings, rarest, asked)
    rows = runs_of(runs, settings, asked.output)
    if asked.encoder:
        print("\n".join(encoder_lines(Results(rows))))
        return 0
    missing = [run for run in runs if run not in rows]
    classes = sum(task in {run.task for run in runs} and share < 1 for task, share in rarest.items())
    command, draws = command_of("heldout", words), len(asked.draws)
    facts = HeldOutFacts(command, place.base.name, draws, TEST_ROWS, missing, asked.suite, classes)
    write({}, None, markdown(Results(rows), facts), asked.table)
    print(f"{len(rows)} of {len(runs)} runs; {asked.table}")
    return 0


def _asked(words: Sequence[str]) -> argparse.Namespace:
    parser = command_line(__doc__)
    add_shared(parser)
    parser.add_argument("--suite", choices=tuple(SUITES), default=HELD_OUT, help="which tasks")
    parser.add_argument("--base", default="mini", help="name or folder; with --encoder also a bare backbone's folder")
    parser.add_argument("--device", default="cpu", help="cpu, cuda or cuda:N")
    parser.add_argument("--data", type=Path, help="folder of the tasks")
    parser.add_argument("--tasks", type=listed, default=(), metavar="A,B", help="only these; likewise the next three")
    parser.add_argument("--arms", type=listed, default=(), metavar="A,B", help=", ".join(ARMS))
    parser.add_argument("--rows", metavar="16,32", help="labelled rows in all")
    parser.add_argument("--draws", default=",".join(map(str, DRAWS)), metavar="0,1,2", help="seeds of the draws")
    parser.add_argument("--hours", type=float, help="after which no further run begins")
    parser.add_argument("--encoder", action="store_true", help="only what needs no training")
    asked = parser.parse_args(words)
    if asked.encoder:
        asked.arms, asked.rows = asked.arms or CHEAP, asked.rows or QUICK_ROWS
        asked.output = asked.output or PLACE / "encoder.jsonl"
    require_names(parser, "arm", asked.arms, ARMS)
    asked.data = asked.data or DATA / SUITES[asked.suite].folder
    asked.output = asked.output or RESULTS / f"{asked.suite}.jsonl"
    asked.table = asked.table or PAGES / f"{asked.suite}.md"
    asked.rows, asked.draws = (tuple(map(int, listed(text or ""))) for text in (asked.rows, asked.draws))
    return asked


def _measure(
    place: LoadedBase,
    runs: Sequence[ArmRun],
    settings: Settings,
    rarest: Mapping[str, float],
    asked: argparse.Namespace,
) -> None:
    """Measure the runs that the file lacks."""
    readers = readers_of(place, PLACE / "features")
    mine = [run for run in runs if run.arm not in OF_TEACHER or run.arm in readers]
    there = runs_of(mine, settings, asked.output)
    of_task = families(asked.data)
    jobs = {run.cell for run in mine if run.arm == DEFAULT and run not in there}
    setfit = setfit_for([run for run in mine if run not in there], asked.threads)
    mine = [run for run in mine if run.arm != SETFIT or run in there or setfit]
    arms, cells = Arms(Families(of_task, place.base), readers, jobs, setfit), Cells(place, asked.data)

    def measure(run: ArmRun) -> Row:
        facts: Row = {"family": of_task.get(run.task, ""), "rarest": round(rarest[run.task], 4)}
        facts |= {} if place.device == "cpu" else {"device": place.device}
        return facts | _measured(arms, cells, run)

    with setfit or nullcontext():
        run_missing(mine, measure, settings, asked.output, asked.hours)


def setfit_for(missing: Sequence[ArmRun], threads: int) -> SetFit | None:
    """The SetFit process where a run requests it; None, with a sentence, where it cannot be installed."""
    if not any(run.arm == SETFIT for run in missing):
        return None
    try:
        log = ENVIRONMENT.with_name(f"setfit-{os.getpid()}.log")
        return SetFit(installed(ENVIRONMENT), model_folder(), log, threads)
    except NotFoundError as error:
        print(f"left out: {SETFIT}. {error.message} {error.remedy}")
        return None


def _measured(arms: Arms, cells: Cells, run: ArmRun) -> Row:
    cell = cells.of(run)
    try:
        learned = arms.answer(cell, run)
    except InputError as error:
        if run.arm not in READ_OUT:
            raise
        return {"reason": error.message, "seconds": 0.0}
    return {**measured(cell, learned.answers), **learned.facts, "seconds": round(learned.seconds, 2)}


if __name__ == "__main__":
    sys.exit(main())
