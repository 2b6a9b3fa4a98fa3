"""Accuracy by the number of labels, for several orders in which a task's texts are labeled.

    python -m bench.labelling [--orders random,apart] [--report]

The tasks are next to the checkout (../shared/data/wide) or in --data; where they are missing it says so and stops.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from bench.harness.command import DATA, WORK, command_line, command_of, datasets_there, require_names
from bench.harness.earlier_tasks import first_tasks, prior_of, source_lessons
from bench.harness.report import made_by, report
from bench.heldout.families import held_out
from bench.heldout.features import Features, encoder_features
from bench.heldout.material import LoadedBase, opened
from bench.heldout.plan import listed
from bench.labelling.page import page
from bench.labelling.plan import DRAWS, ORDERS, POOL, TASKS
from bench.labelling.walk import accuracies, texts_of
from bench.transfer.material import read
from onboard.domain.dataset import Dataset


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and write the page."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    asked = _asked(words)
    if asked.report:
        return report(json.loads(asked.output.read_text(encoding="utf-8")), asked, page)
    if not datasets_there(asked.data, "--data", ("wide",)):
        return 0
    torch.set_num_threads(1)
    place = opened(asked.base)
    started = time.process_time()
    runs = _measured(place, asked, encoder_features(place, WORK / "labelling" / "features"))
    seconds = round(time.process_time() - started)
    document = {
        **made_by(command_of("labelling", words)), "base": place.base.name, "seconds": seconds, "runs": runs,
    }  # fmt: skip
    return report(document, asked, page)


def _measured(place: LoadedBase, asked: argparse.Namespace, features: Features) -> list[dict[str, Any]]:
    lessons = source_lessons(place, asked.data, features)
    prior, runs = None, list[dict[str, Any]]()
    for name, whole in _tasks(asked.data / "wide", asked.tasks):
        for draw in DRAWS[: asked.draws]:
            texts = texts_of(name, whole, draw, features)
            prior = prior or prior_of(lessons, texts.pool.shape[1])
            for order in asked.orders:
                found = {str(labels): right for labels, right in accuracies(texts, order, prior, draw).items()}
                runs.append({"task": name, "labels": len(whole.labels), "draw": draw, "order": order, **found})
            print(f"{name} {draw}", file=sys.stderr, flush=True)
    return runs


def _tasks(folder: Path, count: int) -> list[tuple[str, Dataset]]:
    """Held-out tasks of single texts with classes and enough rows, in an order that says nothing about them."""
    found: list[tuple[str, Dataset]] = []
    names = held_out(folder)
    for name in first_tasks(names, len(names), 0):
        if len(found) == count:
            break
        whole = read(folder / name)
        if whole.kind == "classification" and not whole.pairs and len(whole.train) >= POOL:
            found.append((name, whole))
    return found


def _asked(words: Sequence[str]) -> argparse.Namespace:
    parser = command_line(__doc__, "labelling")
    parser.add_argument("--base", default="mini", help="name or folder")
    parser.add_argument("--data", type=Path, default=DATA, help="folder with source/ and wide/")
    parser.add_argument("--orders", type=listed, default=tuple(ORDERS), metavar="A,B", help=", ".join(ORDERS))
    parser.add_argument("--tasks", type=int, default=TASKS)
    parser.add_argument("--draws", type=int, default=len(DRAWS), help="of the texts that wait for a label")
    parser.add_argument("--report", action="store_true", help="measure nothing, write the page")
    asked = parser.parse_args(words)
    require_names(parser, "order", asked.orders, ORDERS)
    return asked


if __name__ == "__main__":
    sys.exit(main())
