"""SetFit's own test sets (CR, AG News, emotion, SST-5, Enron spam, Amazon CF), 8 and 64 rows of each class.

    python -m bench.setfit_sets [--data DIR] [--arms default,setfit] [--shots 8] [--part 1/2] [--hours 4] [--report]

DIR holds a folder for each set (cr, ag_news, emotion, sst5, enron_spam, amazon_cf) with train.jsonl.gz and
test.jsonl.gz. Sets that are not there are named on the page. Finished runs stand in --output: the same command goes on
where it was stopped.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path

import torch

from bench.harness.command import DATA, add_shared, command_line, command_of, require_names
from bench.harness.report import write
from bench.harness.rows import Row
from bench.heldout.__main__ import PLACE, setfit_for
from bench.heldout.arms import Arms, readers_of
from bench.heldout.families import Families
from bench.heldout.figures import Results
from bench.heldout.material import TEST_ROWS, Cells, LoadedBase, opened
from bench.heldout.measures import measured
from bench.heldout.plan import DEFAULT, DRAWS, SETFIT, ArmRun, listed, numbers, part_of
from bench.heldout.settings import settings_of
from bench.heldout.sharing import Settings, run_missing, runs_of
from bench.setfit_sets.page import SetFitFacts, markdown
from bench.setfit_sets.plan import ARMS, SHOTS, plan, present_sets
from bench.transfer.material import read


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the missing measurements of the part, and write the page."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    asked = _asked(words)
    torch.set_num_threads(asked.threads)
    place = opened(asked.base, asked.device)
    classes = {name: len(read(asked.data / name).labels) for name in present_sets(asked.data)}
    runs, settings = plan(classes, asked.shots, asked.draws, asked.arms), settings_of(place)
    if not asked.report and runs:
        _measure(place, part_of(runs, *asked.part), settings, asked)
    rows = runs_of(runs, settings, asked.output)
    missing = [run for run in runs if run not in rows]
    draws = len(asked.draws)
    facts = SetFitFacts(command_of("setfit_sets", words), place.base.name, draws, TEST_ROWS, missing, classes)
    write({}, None, markdown(Results(rows), facts), asked.table)
    print(f"{len(rows)} of {len(runs)} runs; {asked.table}")
    return 0


def _measure(place: LoadedBase, runs: Sequence[ArmRun], settings: Settings, asked: argparse.Namespace) -> None:
    there = runs_of(runs, settings, asked.output)
    missing = [run for run in runs if run not in there]
    setfit = setfit_for(missing, asked.threads)
    mine = [run for run in runs if run.arm != SETFIT or run in there or setfit]
    jobs = {run.cell for run in missing if run.arm == DEFAULT}
    no_families: Mapping[str, str] = {}
    arms = Arms(Families(no_families, place.base), readers_of(place, PLACE / "features"), jobs, setfit)
    cells = Cells(place, asked.data)

    def measure(run: ArmRun) -> Row:
        cell = cells.of(run)
        learned = arms.answer(cell, run)
        facts: Row = {"family": "", "rarest": 1.0, "seconds": round(learned.seconds, 2)}
        return {**facts, **measured(cell, learned.answers), **learned.facts}

    with setfit or nullcontext():
        run_missing(mine, measure, settings, asked.output, asked.hours)


def _asked(words: Sequence[str]) -> argparse.Namespace:
    parser = command_line(__doc__, "setfit_sets", "jsonl")
    add_shared(parser)
    parser.add_argument("--base", default="mini", help="name or folder")
    parser.add_argument("--device", default="cpu", help="cpu, cuda or cuda:N")
    parser.add_argument("--data", type=Path, default=DATA / "setfit", help="folder of the sets")
    parser.add_argument("--arms", type=listed, default=ARMS, metavar="A,B", help=", ".join(ARMS))
    parser.add_argument("--shots", type=numbers, default=SHOTS, metavar="8,64", help="labelled rows of each class")
    parser.add_argument("--draws", type=numbers, default=DRAWS, metavar="0,1,2", help="seeds of the draws")
    parser.add_argument("--hours", type=float, help="after which no further run begins")
    asked = parser.parse_args(words)
    require_names(parser, "arm", asked.arms, ARMS)
    return asked


if __name__ == "__main__":
    sys.exit(main())
