"""Tasks with several labels per text: our readout compared with one-vs-rest regressions and LoRA.

    python -m bench.multilabel [--arms ours,tfidf] [--rows 32,100] [--part 1/2] [--report]

Finished runs stand in --output: the same command goes on where it was stopped. The tasks are next to the checkout
(../shared/data/multi) or in --data; where they are missing it says so and stops. MiniLM is left out where it is not
installed.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
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
from bench.heldout.features import Features, encoder_features, installed_teacher, of_teacher
from bench.heldout.figures import Results
from bench.heldout.linear import INVERSE_PENALTY
from bench.heldout.material import LoadedBase, opened
from bench.heldout.plan import ArmRun, listed, numbers
from bench.heldout.settings import PRIOR_SETTINGS, digest
from bench.heldout.sharing import Settings, run_missing, runs_of
from bench.multilabel.arms import TEST_ROWS, Arms, drawn
from bench.multilabel.lora import CURVE_RATE, FIRST_RATE, FIRST_STEPS, PLACES_HELD
from bench.multilabel.page import markdown
from bench.multilabel.plan import ARMS, DRAWS, LORA, LORA_RECIPE, MINILM, OF_ENCODER, OURS, ROWS, plan
from bench.transfer.material import read
from bench.transfer.recipes import RECIPES
from onboard.evaluate.sets import evaluate_sets
from onboard.statistics.label_sets import EXPECTED_ROWS, PLACE_DEVIATION, SLOPES

SUITE = "multi"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the missing measurements of the part, and write the page."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    asked = _asked(words)
    if not datasets_there(asked.data, "--data", (SUITE,)):
        return 0
    torch.set_num_threads(asked.threads)
    place, folder = opened(asked.base), asked.data / SUITE
    tasks = sorted(task.name for task in folder.iterdir() if (task / "train.jsonl.gz").is_file())
    runs, settings = plan(tasks, asked.arms, asked.rows), settings_of(place)
    if not asked.report:
        _measure(place, part_of(runs, *asked.part), settings, asked)
    rows = runs_of(runs, settings, asked.output)
    missing = [run for run in runs if run not in rows]
    facts = Facts(command_of("multilabel", words), place.base.name, len(DRAWS), TEST_ROWS, missing)
    write({}, None, markdown(Results(rows), facts), asked.table)
    print(f"{len(rows)} of {len(runs)} runs; {asked.table}")
    return 0


def settings_of(place: LoadedBase) -> dict[str, Row]:
    """The settings that the numbers of each arm depend on, in addition to the task."""
    shared: Row = {"test_rows": TEST_ROWS}
    encoder: Row = {"base": place.base_digest, "sets": digest([SLOPES, PLACE_DEVIATION, EXPECTED_ROWS])}
    ours: Row = {"prior": digest(PRIOR_SETTINGS), "lessons": lessons_digest(place.base)}
    first_fit = [CURVE_RATE, FIRST_RATE, FIRST_STEPS, PLACES_HELD]
    trained: Row = {"backbone": place.digest, "recipe": asdict(RECIPES[LORA_RECIPE]), "curve": digest(first_fit)}
    return {
        arm: {
            **shared, **(encoder if arm in OF_ENCODER else {}), **(ours if arm == OURS else {}),
            **({"inverse_penalty": INVERSE_PENALTY} if arm == MINILM else {}),
            **(trained if arm == LORA else {}),
        }
        for arm in ARMS
    }  # fmt: skip


def _measure(place: LoadedBase, runs: Sequence[ArmRun], settings: Settings, asked: argparse.Namespace) -> None:
    features = encoder_features(place, WORK / "multilabel" / "features")
    minilm = installed_teacher("MiniLM") if any(run.arm == MINILM for run in runs) else None
    teacher = Features(of_teacher(minilm), WORK / "multilabel" / "minilm") if minilm else None
    mine = [run for run in runs if run.arm != MINILM or teacher]
    lessons = source_lessons(place, asked.data, features) if any(run.arm == OURS for run in mine) else {}
    arms = Arms(place, lessons, features, teacher)
    wholes = {task: read(asked.data / SUITE / task) for task in dict.fromkeys(run.task for run in mine)}

    def measure(run: ArmRun) -> Row:
        draw = drawn(wholes[run.task], run)
        started = time.process_time()
        scores = arms.answer(draw, run.arm)
        seconds = round(time.process_time() - started, 2)
        figures = {name: round(100 * metric.value, 2) for name, metric in evaluate_sets(draw.truth, scores).items()}
        return {"family": "", "rarest": 1.0, **figures, "seconds": seconds}

    run_missing(mine, measure, settings, asked.output, asked.hours)


def _asked(words: Sequence[str]) -> argparse.Namespace:
    parser = command_line(__doc__, "multilabel", "jsonl")
    add_shared(parser)
    parser.add_argument("--base", default="mini", help="name or folder")
    parser.add_argument("--data", type=Path, default=DATA, help="folder with multi/")
    parser.add_argument("--arms", type=listed, default=tuple(ARMS), metavar="A,B", help=", ".join(ARMS))
    parser.add_argument("--rows", type=numbers, default=ROWS, metavar="32,100", help="labelled rows")
    parser.add_argument("--hours", type=float, help="after which no further run begins")
    asked = parser.parse_args(words)
    require_names(parser, "arm", asked.arms, ARMS)
    return asked


if __name__ == "__main__":
    sys.exit(main())
