"""bench/results/curriculum.md."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bench.curriculum.curricula import SHOTS
from bench.harness.intervals import mean_shown
from bench.harness.page import NONE, table, table_row
from bench.harness.rows import Row
from onboard.domain.counting import counted

BESIDE = "everything"  # what the others are compared with
TFIDF = "TF-IDF on the same rows"


def page(document: Mapping[str, Any]) -> str:
    """The page of the bench's document."""
    budget, of_task = document["budget"], document["families"]
    families = sorted(set(of_task.values()))
    lines = [
        "# Benefit of the curriculum", "",
        f"Made by `{document['command'].strip()}`; the numbers of every run stand in "
        "[curriculum.json](curriculum.json).",
        f"Each hypernetwork is trained from scratch on the base's frozen backbone for {budget['steps']} steps of "
        f"{budget['batch']} rows; more tasks get no more steps. Then a new embedding alone is trained on {SHOTS} rows "
        f"of each of {counted(len(of_task), 'held-out task')}, from the start that the probe chooses: accuracy in per "
        f"cent, {counted(document['draws'], 'draw')} of the rows. The backbone is `{document['name']}`'s and has "
        "learned all kinds, but none of these tasks; what is compared is what a hypernetwork has of them.",
        f"Beside {BESIDE}: the mean difference on the same rows, with a 95% interval over tasks; where a curriculum "
        "without a kind is above it, that kind does not pay.", "",
        *table(["curriculum", "tasks", "mean", f"beside {BESIDE}", *families]),
    ]  # fmt: skip
    runs: dict[str, list[Row]] = {}
    for run in document["runs"]:
        runs.setdefault(run["variant"], []).append(run)
    whole = _by_task(runs[BESIDE], "accuracy") if BESIDE in runs else None
    for name, of in runs.items():
        own = _by_task(of, "accuracy")
        lines.append(table_row(name, of[0]["tasks"], *_cells(own, None if name == BESIDE else whole, of_task)))
    lines.append(table_row(TFIDF, NONE, *_cells(_by_task(document["runs"][:1], "tfidf"), whole, of_task)))
    return "\n".join([*lines, ""])


def _by_task(runs: Sequence[Row], column: str) -> dict[str, np.ndarray]:
    """Of each task, by draw (D,): the mean over the runs' seeds."""
    return {task: np.mean([run[column][task] for run in runs], axis=0) for task in runs[0][column]}


def _cells(
    own: Mapping[str, np.ndarray], whole: Mapping[str, np.ndarray] | None, of_task: Mapping[str, str]
) -> list[str]:
    """The mean, the difference to the whole, and the mean of each family."""
    gain = NONE
    if whole is not None:
        tasks = [task for task in own for _ in own[task]]
        gain = mean_shown(np.concatenate([own[task] - whole[task] for task in own]), tasks)
    by_family: dict[str, list[float]] = {}
    for task, accuracies in own.items():
        by_family.setdefault(of_task[task], []).append(float(accuracies.mean()))
    mean = np.mean([accuracies.mean() for accuracies in own.values()])
    return [f"{mean:.1f}", gain, *(f"{np.mean(by_family[family]):.1f}" for family in sorted(by_family))]
