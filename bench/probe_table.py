"""The page of `bench.probe`: what the probe costs and loses by the number of embeddings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from bench.recipe_table import LEAST_CELLS, LEAST_TASKS, interval

REGISTRY: Final = "registry"
TRAINED_COST: Final = 3  # of a row that is trained on, in rows forward
LARGE, LARGER = 1_000, 10_000


def page(document: Mapping[str, Any]) -> str:
    """Markdown of everything that was measured."""
    cells = [row for row in document["rows"] if row["key"][1] != REGISTRY]
    stored = [row for row in document["rows"] if row["key"][1] == REGISTRY]
    parts = ["# The probe among 10 to 10,000 embeddings\n", _introduction(document, cells)]
    if cells:
        parts += [table(cells, document["shots"], document["exhaustive"]), _ratio(cells, stored)]
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


def table(cells: Sequence[Mapping[str, Any]], shots: int, exhaustive: int) -> str:
    """One line a size."""
    head = [
        "embeddings", "measured", "seconds", "CPU s", "rows", "one by one: CPU s", "rows", "times cheaper: CPU", "rows",
        "regret, points of accuracy", "regret, nats", "same choice",
    ]  # fmt: skip
    lines = [head, ["---"] * len(head)]
    for place, first in enumerate(cells[0]["sizes"]):
        draws = [{**row["sizes"][place], "alone": row["one_by_one_cpu_seconds"]} for row in cells]
        size, tasks = first["size"], [row["key"][1] for row in cells]
        seconds, cpu, alone = _mean(draws, "seconds"), _mean(draws, "cpu_seconds"), size * _mean(draws, "alone")
        rows = _mean(draws, "passes") + TRAINED_COST * _mean(draws, "trained")
        line = [
            f"{size:,}", f"{_mean(draws, 'measured'):.0f}", f"{seconds:.1f}", f"{cpu:.1f}", f"{rows:,.0f}",
            f"{alone:.1f}", f"{size * shots:,}", f"{alone / cpu:.1f}", f"{size * shots / rows:.1f}", "–", "–", "–",
        ]  # fmt: skip
        if all("best" in draw for draw in draws):
            accuracy = np.array([draw["best_accuracy"] - draw["accuracy"] for draw in draws])
            loss = np.array([draw["loss"] - draw["best_loss"] for draw in draws])
            same = np.mean([draw["best"] == draw["chosen"] for draw in draws])
            starred = "" if size <= exhaustive else f" (among {exhaustive:,})"
            line[-3:] = [_shown(accuracy, tasks, 2) + starred, _shown(loss, tasks, 3), f"{100 * same:.0f}%"]
        lines.append(line)
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def _ratio(cells: Sequence[Mapping[str, Any]], stored: Sequence[Mapping[str, Any]]) -> str:
    """What many embeddings cost beside fewer; nothing without the registry's share of both."""
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
    lines = [
        "| versions | SELECT of all fingerprints, ms | to the candidates, ms | candidates |", "|---|---|---|---|",
        *(
            f"| {row['versions']:,} | {1000 * row['select_seconds']:.1f} | {1000 * row['collect_seconds']:.1f} "
            f"| {row['candidates']} |"
            for row in stored
        ),
    ]  # fmt: skip
    above = "SQLite; to the candidates: SELECT, prefilter, and the embeddings that are kept, read and verified."
    return "\n".join([above, "", *lines, ""])


def _mean(draws: Sequence[Mapping[str, Any]], key: str) -> float:
    return float(np.mean([draw[key] for draw in draws]))


def _shown(values: np.ndarray, tasks: Sequence[str], digits: int) -> str:
    between = interval(values, tasks)
    between_shown = f" ({between[0]:+.{digits}f} to {between[1]:+.{digits}f})" if between else ""
    return f"{values.mean():+.{digits}f}{between_shown}"
