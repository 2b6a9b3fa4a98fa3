"""How well a base learns tasks that it has not seen, against the number and variety of its training tasks.

    python -m bench.curriculum [--base mini] [--steps 800] [--draws 1] [--processes 2]

For each curriculum a HyperFormer++ hypernetwork is trained from scratch on the base's frozen backbone, with the same
steps and rows. Then only a new embedding is trained on 32 rows of each of fifteen held-out tasks, one of a family each,
from the candidate that the probe chooses (`few_shot.py`). Curricula are numbers of sources, all of them alone and under
other words too, everything, and everything but one made kind: what that is worth.

Needs the tasks next to the checkout and the teacher (pip install 'onboard[mini]'); says so and stops where they are
missing. Finished runs are kept in a work folder: the same command goes on where it was stopped. Writes
bench/results/curriculum.json and, from it, bench/results/curriculum.md.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from bench.curriculum.curricula import CURRICULA, NUMBERS, Options, counts_of, learned_sources, material_of, measure
from bench.curriculum.page import page
from bench.harness.budgeted import Budget, settings_of, training_command
from bench.harness.command import CHECKOUT, DATA, WORK, command_of
from bench.harness.runs import report_runs, run_all
from bench.heldout.families import families
from bench.stream.tasks import SUITE, TASKS
from onboard.errors import NotFoundError

RECIPE = CHECKOUT / "recipes" / "mini-wide.toml"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the missing measurements, print and write the table."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    asked = _parser().parse_args(words)
    for folder in (asked.sources, asked.wide):
        if not folder.is_dir():
            print(f"skipped: the tasks are not here ({folder}); name their folders: --sources DIR --wide DIR")
            return 0
    budget, tasks = Budget.asked_for(asked), tuple(sorted(asked.tasks))
    options = Options(
        asked.base, asked.sources, asked.wide, tasks, asked.work, asked.recipe, budget, asked.texts, asked.draws
    )
    of_task = families(asked.wide)
    settings = {
        **settings_of(asked), "sources": [source.name for source in learned_sources(options)], "texts": asked.texts,
        "draws": asked.draws, "families": {task: of_task.get(task, task) for task in tasks}, "name": asked.base,
        "curriculum": counts_of(options).model_dump(mode="json"),
    }  # fmt: skip
    try:
        material_of(options)  # once, before there are several processes
    except NotFoundError as error:
        print(f"skipped: {error.message} {error.remedy}")
        return 0
    names = asked.curricula or [*CURRICULA, *(f"{number} sources" for number in NUMBERS)]
    plan = [(name, seed) for seed in range(asked.seeds) for name in names]
    rows = run_all(plan, partial(measure, options=options), asked.work / "curriculum.jsonl", settings, asked.processes)
    return report_runs(command_of("curriculum", words), asked, settings, rows, page)


def _parser() -> argparse.ArgumentParser:
    parser = training_command(__doc__, "curriculum", steps=800, seeds=1)
    parser.add_argument("--wide", type=Path, default=DATA / SUITE, help="more sources, and the tasks held out of them")
    parser.add_argument("--tasks", nargs="+", default=list(TASKS), help="held-out ones that are learned as new")
    parser.add_argument("--recipe", type=Path, default=RECIPE, help="whose [curriculum] it is")
    parser.add_argument("--draws", type=int, default=1, help="draws of the 32 rows")
    parser.add_argument("--texts", type=int, default=12000, help="plain texts that the teacher reads")
    parser.add_argument("--curricula", nargs="*", default=[], help="only these; all when left out")
    parser.add_argument("--work", type=Path, default=WORK, help="finished runs, and what the teacher said")
    return parser


if __name__ == "__main__":
    sys.exit(main())
