"""The page of `bench.probe`: what the probe costs and loses by the number of embeddings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from bench.harness.intervals import LEAST_CELLS, LEAST_TASKS, mean_shown
from bench.harness.page import NONE, of_another_base, table

REGISTRY: Final = "registry"
TRAINED_COST: Final = 3  # of a row that is trained on, in rows forward
LARGE, LARGER = 1_000, 10_000


def page(document: Mapping[str, Any]) -> str:
    """Markdown of everything that was measured."""
    cells = [row for row in document["rows"] if row["key"][1] != REGISTRY]
    stored = [row for row in document["rows"] if row["key"][1] == REGISTRY]
    other = of_another_base(document["base"])
    parts = ["# The probe among 10 to 10,000 embeddings\n", *other, _introduction(document, cells)]
    if cells:
        parts += [sizes_table(cells, document["shots"], document["exhaustive"]), _ratio(cells, stored)]
    if stored:
        parts += ["## The registry\n", _registry(stored)]
    parts.append(f"Made by `{document['command']}` on {document['machine']['processor']}.\n")
    return "\n".join(parts)


def _introduction(document: Mapping[str, Any], cells: Sequence[Mapping[str, Any]]) -> str:
    tasks = list(dict.fromkeys(row["key"][1] for row in cells))
    return (
        f"Each source task ({', '.join(tasks)}) is learned as if it were new, from {document['shots']} rows; "
        f"{len(cells)} draws in all. The embeddings are the base's own without the task's, mixtures of two of them and "
        "perturbed ones. Means over the draws. Rows are counted as they go through the model; one that is trained on "
        f"counts {TRAINED_COST}. One by one: every embedding alone on all rows; its CPU seconds are those of "
        "20 embeddings, multiplied. Regret: what the probe's choice is worse by than that of measuring every embedding "
        "on all rows (with the same last round), on test rows after a job's training, with a 95% bootstrap "
        f"interval over tasks where there are {LEAST_TASKS} of them and {LEAST_CELLS} draws at least. Beyond "
        f"{document['exhaustive']:,} embeddings it is against the best choice among so many of them.\n"
    )


def sizes_table(cells: Sequence[Mapping[str, Any]], shots: int, exhaustive: int) -> str:
    """One line a size."""
    head = [
        "embeddings", "measured", "seconds", "CPU s", "rows", "one by one: CPU s", "rows", "times cheaper: CPU", "rows",
        "regret, points of accuracy", "regret, nats", "same choice",
    ]  # fmt: skip
    lines = []
    for place, first in enumerate(cells[0]["sizes"]):
        draws = [{**row["sizes"][place], "alone": row["one_by_one_cpu_seconds"]} for row in cells]
        size, tasks = first["size"], [row["key"][1] for row in cells]
        seconds, cpu, alone = _mean(draws, "seconds"), _mean(draws, "cpu_seconds"), size * _mean(draws, "alone")
        rows = _mean(draws, "passes") + TRAINED_COST * _mean(draws, "trained")
        line = [
            f"{size:,}", f"{_mean(draws, 'measured'):.0f}", f"{seconds:.1f}", f"{cpu:.1f}", f"{rows:,.0f}",
            f"{alone:.1f}", f"{size * shots:,}", f"{alone / cpu:.1f}", f"{size * shots / rows:.1f}", NONE, NONE, NONE,
        ]  # fmt: skip
        if all("best" in draw for draw in draws):
            accuracy = np.array([draw["best_accuracy"] - draw["accuracy"] for draw in draws])
            loss = np.array([draw["loss"] - draw["best_loss"] for draw in draws])
            same = np.mean([draw["best"] == draw["chosen"] for draw in draws])
            starred = "" if size <= exhaustive else f" (among {exhaustive:,})"
            line[-3:] = [mean_shown(accuracy, tasks, 2) + starred, mean_shown(loss, tasks, 3), f"{100 * same:.0f}%"]
        lines.append(line)
    return "\n".join(table(head, lines, rule=" --- ")) + "\n"


def _ratio(cells: Sequence[Mapping[str, Any]], stored: Sequence[Mapping[str, Any]]) -> str:
    """The cost of many embeddings compared with fewer; nothing without the registry's share of both."""
    probed = {of_size["size"]: _mean([row["sizes"][place] for row in cells], "cpu_seconds")
              for place, of_size in enumerate(cells[0]["sizes"])}  # fmt: skip
    collected = {row["key"][2]: row["collect_seconds"] for row in stored}
    if not {LARGE, LARGER} <= set(probed) & set(collected):
        return ""
    large, larger = (probed[size] + collected[size] for size in (LARGE, LARGER))
    return (
        f"{LARGER:,} embeddings take {larger / large:.2f} times as long as {LARGE:,} (wanted: below 2): {larger:.1f} "
        f"and {large:.1f} s, the probe's CPU seconds and those that the registry takes to the candidates (below).\n"
    )


def _registry(stored: Sequence[Mapping[str, Any]]) -> str:
    above = "SQLite; to the candidates: SELECT, prefilter, and the embeddings that are kept, read and verified."
    rows = [
        [f"{row['versions']:,}", *(f"{1000 * row[what]:.1f}" for what in ("select_seconds", "collect_seconds")),
         row["candidates"]]
        for row in stored
    ]  # fmt: skip
    head = ("versions", "SELECT of all fingerprints, ms", "to the candidates, ms", "candidates")
    return "\n".join([above, "", *table(head, rows), ""])


def _mean(draws: Sequence[Mapping[str, Any]], key: str) -> float:
    return float(np.mean([draw[key] for draw in draws]))
