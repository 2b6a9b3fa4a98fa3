"""The page: accuracy by the number of labels, and each order compared with random."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bench.harness.intervals import interval, mean_shown
from bench.harness.page import NONE, made_on, table
from bench.labelling.plan import ORDERS, POOL, RANDOM, ROUND, SHIPPED, SHOWN, TEST_ROWS

Runs = Sequence[Mapping[str, Any]]


def page(document: Mapping[str, Any]) -> str:
    """The Markdown of the measurements."""
    runs: Runs = document["runs"]
    tasks = list(dict.fromkeys(run["task"] for run in runs))
    draws = len({run["draw"] for run in runs})
    lines = [
        "# In which order texts are labeled", "",
        f"{made_on(document)} made this page in {document['seconds']:,} seconds of one core, with the base "
        f"`{document['base']}`.", "",
        f"{len(tasks)} held-out tasks of single texts, {draws} draws of {POOL} texts that wait for a label, at most "
        f"{TEST_ROWS} test rows. {ROUND} texts are labeled at a time; then the readout of the labels so far is made "
        "again (label words and prior included) and the order chooses the next texts. Accuracy in points, mean over "
        "tasks.", "",
        f"**Shipped: {ORDERS[SHIPPED]}.** {_verdict(runs)}", "",
        "## Accuracy by labels", "", *table(["order", *(f"{count} labels" for count in SHOWN)], _means(runs)), "",
        "## Compared with random", "",
        "Paired differences, with 95% intervals over tasks and draws.", "",
        *table(["order", *(f"{count} labels" for count in SHOWN[1:]), "mean over 8 to 96"], _gains(runs)), "",
        "## By task, mean over 8 to 96 labels", "", *table(["task", "labels", *_present(runs)], _by_task(runs, tasks)),
        "",
    ]  # fmt: skip
    return "\n".join(lines)


def _present(runs: Runs) -> list[str]:
    there = {run["order"] for run in runs}
    return [order for order in ORDERS if order in there]


def _cells(runs: Runs, order: str) -> tuple[np.ndarray, list[str]]:
    """Accuracies (cells, counts) of an order, and the task of each cell."""
    own = sorted((run for run in runs if run["order"] == order), key=lambda run: (run["task"], run["draw"]))
    return np.array([[run[str(count)] for count in SHOWN] for run in own]), [run["task"] for run in own]


def _means(runs: Runs) -> list[list[str]]:
    return [[ORDERS[order], *(f"{right:.1f}" for right in _cells(runs, order)[0].mean(0))] for order in _present(runs)]


def _gains(runs: Runs) -> list[list[str]]:
    if RANDOM not in _present(runs):
        return []
    base, tasks = _cells(runs, RANDOM)
    lines = []
    for order in _present(runs):
        if order != RANDOM:
            gain = _cells(runs, order)[0] - base
            parts = [mean_shown(gain[:, place], tasks) for place in range(1, len(SHOWN))]
            lines.append([ORDERS[order], *parts, mean_shown(gain[:, 1:].mean(1), tasks)])
    return lines


def _verdict(runs: Runs) -> str:
    means = {order: float(_cells(runs, order)[0][:, 1:].mean()) for order in _present(runs)}
    best = max(means, key=lambda order: means[order])
    said = "It has the highest mean over 8 to 96 labels."
    if best != SHIPPED:
        said = f"The highest mean over 8 to 96 labels has another one: {ORDERS[best]}."
    return said if best == RANDOM or _is_ahead(runs, best) else f"{said} No order is measurably better than random."


def _is_ahead(runs: Runs, order: str) -> bool:
    base, tasks = _cells(runs, RANDOM)
    between = interval((_cells(runs, order)[0] - base)[:, 1:].mean(1), tasks) if len(base) else None
    return between is not None and between[0] > 0


def _by_task(runs: Runs, tasks: Sequence[str]) -> list[list[object]]:
    lines: list[list[object]] = []
    for task in sorted(tasks):
        own = [run for run in runs if run["task"] == task]
        cells = [_cells(own, order)[0] for order in _present(runs)]
        lines.append([task, own[0]["labels"], *(f"{part[:, 1:].mean():.1f}" if part.size else NONE for part in cells)])
    return lines
