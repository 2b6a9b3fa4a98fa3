"""The benefit of the first half of a series of related tasks for its last half, in one installation.

    python -m bench.series [--arms base,few] [--draws 0] [--part 1/2] [--hours 4] [--report]
    python -m bench.series --whole

Without --whole readouts are fitted in closed form; with it whole jobs run too, about a minute each, in homes that have
learned the first half. Finished runs stand in --output: the same command goes on where it was stopped. The series stand
next to the checkout (../shared/data/series, and the sources that the base's prior is of) or in --data; where they are
missing it says so and stops.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import torch

from bench.harness.command import (
    DATA,
    WORK,
    add_shared,
    command_line,
    command_of,
    datasets_there,
    part_of,
    require_names,
)
from bench.harness.earlier_tasks import lessons_digest, source_lessons
from bench.harness.page import Facts
from bench.harness.report import write
from bench.harness.rows import Row
from bench.heldout.features import encoder_features
from bench.heldout.figures import Results
from bench.heldout.material import TEST_ROWS, LoadedBase, opened
from bench.heldout.measures import measured
from bench.heldout.plan import DRAWS, ArmRun, listed, numbers
from bench.heldout.settings import PRIOR_SETTINGS, READOUT_SETTINGS, digest, job_settings
from bench.heldout.sharing import Settings, run_missing, runs_of
from bench.series.arms import Arms
from bench.series.material import Cells, all_series
from bench.series.page import markdown
from bench.series.plan import ALONE, ARMS, DEFAULTS, READOUTS, plan, series_of
from onboard.errors import InputError

SUITES = ("series", "source", "wide")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the missing measurements of the part, and write the page."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    asked = _asked(words)
    if not datasets_there(asked.data, "--data", SUITES):
        return 0
    torch.set_num_threads(asked.threads)
    place = opened(asked.base, asked.device)
    tasks = [task for series in all_series(asked.data / "series") for task in series.last_half]
    runs, settings = plan(tasks, asked.draws, asked.arms), settings_of(place)
    if not asked.report:
        _measure(place, part_of(runs, *asked.part), settings, asked)
    rows = runs_of(runs, settings, asked.output)
    missing = [run for run in runs if run not in rows]
    facts = Facts(command_of("series", words), place.base.name, len(asked.draws), TEST_ROWS, missing)
    write({}, None, markdown(Results(rows), facts), asked.table)
    print(f"{len(rows)} of {len(runs)} runs; {asked.table}")
    return 0


def settings_of(place: LoadedBase) -> dict[str, Row]:
    """The settings that the numbers of each arm depend on, in addition to task and rows."""
    of_prior = digest([PRIOR_SETTINGS, READOUT_SETTINGS])
    alone: Row = {"base": place.base_digest, "readout": digest(READOUT_SETTINGS), "test_rows": TEST_ROWS}
    lessons: Row = {"prior": of_prior, "lessons": lessons_digest(place.base)}
    whole: Row = {"job": job_settings()}
    return {arm: {**alone, **({} if arm == ALONE else lessons), **(whole if arm in DEFAULTS else {})} for arm in ARMS}


def _measure(place: LoadedBase, runs: Sequence[ArmRun], settings: Settings, asked: argparse.Namespace) -> None:
    there = runs_of(runs, settings, asked.output)
    features = encoder_features(place, WORK / "heldout" / "features")
    readouts = any(run.arm in READOUTS and run.arm != ALONE for run in runs if run not in there)
    lessons = source_lessons(place, asked.data, features) if readouts else {}
    cells = Cells(place, asked.data / "series")
    series = {own.name: own for own in all_series(cells.folder)}
    arms = Arms(cells, series, lessons, features, WORK / "series" / digest(settings))

    def measure(run: ArmRun) -> Row:
        facts: Row = {"family": series_of(run.task), "rarest": 1.0}
        try:
            learned = arms.answer(run)
        except InputError as error:
            return {**facts, "reason": error.message, "seconds": 0.0}
        return {**facts, **measured(cells.of(run), learned.answers), "seconds": round(learned.seconds, 2)}

    run_missing(runs, measure, settings, asked.output, asked.hours)


def _asked(words: Sequence[str]) -> argparse.Namespace:
    parser = command_line(__doc__, "series", "jsonl")
    add_shared(parser)
    parser.add_argument("--base", default="mini", help="name or folder")
    parser.add_argument("--device", default="cpu", help="cpu, cuda or cuda:N")
    parser.add_argument("--data", type=Path, default=DATA, help="folder with series/, source/ and wide/")
    parser.add_argument("--arms", type=listed, metavar="A,B", help=", ".join(ARMS))
    parser.add_argument("--draws", type=numbers, default=DRAWS, metavar="0,1,2", help="seeds of the draws")
    parser.add_argument("--whole", action="store_true", help="whole jobs too")
    parser.add_argument("--hours", type=float, help="after which no further run begins")
    asked = parser.parse_args(words)
    asked.arms = asked.arms or (tuple(ARMS) if asked.whole else READOUTS)
    require_names(parser, "arm", asked.arms, ARMS)
    return asked


if __name__ == "__main__":
    sys.exit(main())
