"""Fifteen unseen tasks in a row: the learning of each, and the fate of the earlier ones, by five methods.

    python -m bench.stream [--part 1/2] [--hours 4] [--plan] [--report]

Finished steps stand in the output file: the same command goes on where it was stopped, and several processes may share
it, each with its own --part. The page is written from what the file holds. The datasets are next to the checkout
(../shared/data) or in --data; where they are missing it says so and stops.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from bench.harness.command import DATA, WORK, add_shared, command_line, command_of, datasets_there, deadline, part_of
from bench.harness.report import describe, write
from bench.stream.estimate import lines
from bench.stream.figures import Results
from bench.stream.heat import svg
from bench.stream.material import Material
from bench.stream.methods import METHODS, settings_of
from bench.stream.page import Facts, markdown
from bench.stream.sharing import Journal, Stream, digest_of
from bench.stream.sizes import sizes
from bench.stream.tasks import SUITE, TASKS, in_order
from bench.stream.walking import walk
from onboard.bases import find_base


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the missing measurements of the part, and write the page."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    asked = _parser().parse_args(words)
    if not datasets_there(asked.data, "--data", (SUITE,)):
        return 0
    torch.set_num_threads(asked.threads)
    material = Material(find_base(asked.base), asked.data, asked.shots, asked.test_rows, asked.max_tokens)
    names = [task for task in TASKS if task in asked.tasks]
    settings = {method: settings_of(method, asked.shots) for method in asked.methods}
    whole = {method: _whole(material, names, own) for method, own in settings.items()}
    journal = Journal(asked.output, whole)
    streams = [Stream(order, method) for order in range(asked.orders) for method in METHODS if method in asked.methods]
    mine = part_of(streams, *asked.part)
    if asked.plan:
        print("\n".join(lines(material, mine, names, journal)))
        return 0
    time_is_up = deadline(asked.hours)
    for stream in [] if asked.report else mine:
        walk(material, stream, names, journal, asked.weights, time_is_up)
    _write(command_of("stream", words), material, streams, names, journal, settings, asked)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = command_line(__doc__, "stream", "jsonl")
    add_shared(parser)
    parser.add_argument("--base", default="mini")
    parser.add_argument("--data", type=Path, default=DATA, help="folder with wide/")
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=list(TASKS), help="a shorter stream")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--orders", type=int, default=3, help="of the tasks, each with draws of its own")
    parser.add_argument("--shots", type=int, default=32, help="labelled rows of a task")
    parser.add_argument("--test-rows", type=int, default=200, help="most of a task")
    parser.add_argument("--max-tokens", type=int, default=64, help="after which texts are cut")
    parser.add_argument("--hours", type=float, help="after which no further task begins")
    parser.add_argument("--plan", action="store_true", help="say what is missing and what it would cost, and stop")
    parser.add_argument("--weights", type=Path, default=WORK / "stream")
    return parser


def _whole(material: Material, names: Sequence[str], settings: dict[str, Any]) -> dict[str, Any]:
    """All that the numbers of a method depend on."""
    of_all = {
        "base": material.base.digest, "tasks": names, "shots": material.shots, "test_rows": material.test_rows,
        "max_tokens": material.max_tokens,
    }  # fmt: skip
    canaries = {"canaries": digest_of(material.canaries)} if "tuning" in settings else {}
    return {**of_all, **canaries, "method": settings}


def _write(
    command: str,
    material: Material,
    streams: Sequence[Stream],
    names: Sequence[str],
    journal: Journal,
    settings: dict[str, Any],
    asked: argparse.Namespace,
) -> None:
    """The page, and a heat map of the first order."""
    steps = {stream: rows for stream, rows in journal.steps().items() if stream in streams}
    there, planned = sum(map(len, steps.values())), len(streams) * len(names)
    results = Results(steps, [in_order(names, order) for order in range(asked.orders)])
    facts = Facts(
        command, material.base.name, asked.shots, asked.test_rows, asked.max_tokens, planned - there, settings,
        describe(),
    )  # fmt: skip
    write({}, None, markdown(results, sizes(material, results), facts), asked.table)
    panels = {METHODS[method].title: results.matrix(method, 0) for method in METHODS if results.rows(method, 0)}
    picture = asked.table.with_name(f"{asked.table.stem}-1.svg")
    picture.write_text(
        svg("Accuracy on each task after each task, order 1", results.tasks[0], panels), encoding="utf-8"
    )
    print(f"{there} of {planned} steps; {asked.table}")


if __name__ == "__main__":
    sys.exit(main())
