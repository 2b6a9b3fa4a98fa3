"""Held-out tasks without a labeled row: label words, their descriptions and the prior, next to MiniLM and entailment.

    python -m bench.zero_rows [--arms onboard,minilm] [--report]

The descriptions are in descriptions.json, a sentence for each label. Finished runs are in --output: the same command
goes on where it was stopped. The tasks are next to the checkout (../shared/data) or in --data; without them the command
says so and stops.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

from bench.harness.as_if_new import drawn_tests
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
from bench.heldout.families import families, held_out
from bench.heldout.features import encoder_features, installed_teacher
from bench.heldout.figures import Results
from bench.heldout.material import TEST_ROWS, LoadedBase, opened, rarest_label
from bench.heldout.measures import of_classes
from bench.heldout.plan import ArmRun, listed
from bench.heldout.settings import PRIOR_SETTINGS, digest
from bench.heldout.sharing import Settings, run_missing, runs_of
from bench.transfer.material import read
from bench.zero_rows.answers import ABOUT_TEXT, ENTAILMENT, Arms, Descriptions, TaskWithoutRows
from bench.zero_rows.page import markdown
from bench.zero_rows.plan import (
    ABOUT,
    ARMS,
    CHANCE,
    NLI,
    OF_DESCRIPTIONS,
    OF_ENCODER,
    OF_PRIOR,
    OF_READOUT,
    OF_TEACHER,
    plan,
)
from onboard.domain.dataset import class_indices
from onboard.statistics.zero_rows import NAMES_BESIDE_PRIOR, SHARPNESS_PAIRS, SHARPNESS_TEXTS

SUITES = ("source", "wide")
DESCRIPTIONS = Path(__file__).with_name("descriptions.json")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the missing measurements of the part, and write the page."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    asked = _asked(words)
    if not datasets_there(asked.data, "--data", SUITES):
        return 0
    torch.set_num_threads(asked.threads)
    place, folder = opened(asked.base), asked.data / "wide"
    descriptions: Descriptions = json.loads(DESCRIPTIONS.read_text(encoding="utf-8"))
    rarest = {task: rarest_label(folder / task) for task in held_out(folder)}
    tasks = [task for task, share in rarest.items() if share < 1]  # the others request a number
    entails = any(source.name == ENTAILMENT[0] for source in place.base.sources)
    arms = [arm for arm in asked.arms if arm != NLI or entails]
    runs, settings = plan(tasks, arms, descriptions), settings_of(place, descriptions)
    if not asked.report:
        _measure(place, part_of(runs, *asked.part), settings, descriptions, asked)
    rows = runs_of(runs, settings, asked.output)
    missing = [run for run in runs if run not in rows]
    facts = Facts(command_of("zero_rows", words), place.base.name, draws=1, test_rows=TEST_ROWS, missing=missing)
    write({}, None, markdown(Results(rows), facts), asked.table)
    print(f"{len(rows)} of {len(runs)} runs; {asked.table}")
    return 0


def settings_of(place: LoadedBase, descriptions: Descriptions) -> dict[str, Row]:
    """The settings that the numbers of each arm depend on, in addition to the task."""
    parts: Sequence[tuple[Sequence[str], Row]] = [
        (tuple(ARMS), {"test_rows": TEST_ROWS}),
        (OF_ENCODER, {"base": place.base_digest}),
        (OF_READOUT, {"readout": digest([NAMES_BESIDE_PRIOR, SHARPNESS_TEXTS, SHARPNESS_PAIRS])}),
        (OF_PRIOR, {"prior": digest(PRIOR_SETTINGS), "lessons": lessons_digest(place.base)}),
        (OF_DESCRIPTIONS, {"descriptions": digest(descriptions)}),
        ((ABOUT, NLI), {"about": ABOUT_TEXT}),
    ]
    return {arm: dict(fact for arms, row in parts if arm in arms for fact in row.items()) for arm in ARMS}


def _measure(
    place: LoadedBase, runs: Sequence[ArmRun], settings: Settings, descriptions: Descriptions, asked: argparse.Namespace
) -> None:
    folder, features = asked.data / "wide", encoder_features(place, WORK / "heldout" / "features")
    of_task = families(folder)
    teacher = installed_teacher("MiniLM's cosines") if any(run.arm in OF_TEACHER for run in runs) else None
    mine = [run for run in runs if run.arm not in OF_TEACHER or teacher]
    there = runs_of(mine, settings, asked.output)
    with_prior = any(run.arm in OF_PRIOR for run in mine if run not in there)
    lessons = source_lessons(place, asked.data, features) if with_prior else {}
    arms = Arms(place, lessons, features, teacher.vectors if teacher else None)

    def measure(run: ArmRun) -> Row:
        started = time.process_time()
        whole = read(folder / run.task)
        test = drawn_tests(whole, TEST_ROWS)
        answers = arms.answer(TaskWithoutRows.of(run.task, whole, test, descriptions), run.arm)
        truth = np.array(class_indices(whole.labels, test))
        figures = of_classes(truth, answers, np.ones(len(whole.labels)))
        if run.arm == CHANCE:  # of equal probabilities the first label would be taken
            figures["accuracy"] = round(100 / len(whole.labels), 2)
        facts: Row = {"family": of_task.get(run.task, ""), "rarest": 1.0}
        return {**facts, **figures, "seconds": round(time.process_time() - started, 2)}

    run_missing(mine, measure, settings, asked.output, asked.hours)


def _asked(words: Sequence[str]) -> argparse.Namespace:
    parser = command_line(__doc__, "zero_rows", "jsonl")
    add_shared(parser)
    parser.add_argument("--base", default="mini", help="name or folder")
    parser.add_argument("--data", type=Path, default=DATA, help="folder with source/ and wide/")
    parser.add_argument("--arms", type=listed, default=tuple(ARMS), metavar="A,B", help=", ".join(ARMS))
    parser.add_argument("--hours", type=float, help="after which no further run begins")
    asked = parser.parse_args(words)
    require_names(parser, "arm", asked.arms, ARMS)
    return asked


if __name__ == "__main__":
    sys.exit(main())
