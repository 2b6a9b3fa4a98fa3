"""docs/results/curriculum.md."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bench.curriculum.curricula import MADE, SHOTS
from bench.harness.intervals import shown
from bench.harness.page import NONE, table, table_row
from bench.harness.rows import Row


def page(document: Mapping[str, Any]) -> str:
    """The page of the bench's document."""
    budget, target = document["budget"], document["target"]
    lines = [
        "# What the curriculum is worth", "",
        f"Made by `{document['command'].strip()}`; the numbers of every run stand in "
        "[curriculum.json](../../bench/results/curriculum.json).",
        f"Each hypernetwork is trained from scratch on the base's frozen backbone for {budget['steps']} steps of "
        f"{budget['batch']} rows; more tasks get no more steps.",
        f"Then a new embedding alone is trained on {SHOTS} rows. Accuracy in per cent; {target} with the 95% interval "
        f"over {document['draws']} draws of the rows. (seen): the kind was in training, these very tasks among it.",
        f"Unseen means unseen by the hypernetwork: the backbone of `mini` has learned all of it, but not {target}.", "",
        *table(["curriculum", "tasks", f"{target}, chosen start", f"{target}, random start", *MADE]),
    ]  # fmt: skip
    names = dict.fromkeys(run["variant"] for run in document["runs"])
    for name in names:
        runs = [run for run in document["runs"] if run["variant"] == name]
        auto, random = (
            shown([value for run in runs for value in run["target"][column]])
            for column in ("auto_after", "random_after")
        )
        made = [_cell(kind, runs) for kind in MADE]
        lines.append(table_row(name, runs[0]["tasks"], auto, random, *made))
    first = document["runs"][0]
    commonest = [f"{first['made'][kind]['commonest']:.1f}" if first["made"][kind] else NONE for kind in MADE]
    tfidf = shown(first["target"]["tfidf"])
    lines.append(f"| TF-IDF on the same rows; commonest answer | | {tfidf} | | {' | '.join(commonest)} |")
    return "\n".join([*lines, ""])


def _cell(kind: str, runs: Sequence[Row]) -> str:
    if runs[0]["made"][kind] is None:
        return NONE
    value = shown([run["made"][kind]["accuracy"] for run in runs])
    return f"{value} (seen)" if kind in runs[0]["kinds"] else value
