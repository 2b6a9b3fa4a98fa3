"""bench/results/guard.md."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any

from bench.guard.rates import EDGES
from bench.harness.page import NONE, joined, of_another_base, table


def page(document: Mapping[str, Any]) -> str:
    """The page of the bench's document."""
    parts = (_head, _single_tasks, _whole_changes, _steps, _divergence, _time)
    return "\n".join(line for part in parts for line in (*part(document), ""))


def _head(document: Mapping[str, Any]) -> list[str]:
    return [
        "# The guard: false alarms, misses, time", "",
        *of_another_base(document["base"]),
        f"`{document['command']}`, on {document['machine']['processor']}, one thread; base `{document['base_name']}`. "
        "Explanation: [guard](../../docs/explanation/guard.md); reasons: "
        "[decision 12](../../docs/decisions/0012-tasks-without-held-out-rows-are-judged-by-divergence.md).", "",
        f"{document['pairs']} pairs of a change and a task: {document['changes']} changes of the hypernetwork "
        f"({', '.join(document['directions'])}; each in the sizes {_listed(document['sizes'])} nats of mean "
        f"divergence) on {len(document['tasks'])} tasks ({', '.join(document['tasks'])}). "
        f"The true cost of a change for a task is the rise of its mean log-loss on {document['rows']} labelled test "
        "rows; the guard's verdicts come from repeated samples of them, or of texts without labels.", "",
        "Test rows count so that each label has the weight that it had in training. A change that is none is never "
        "refused: all differences are exactly 0.",
    ]  # fmt: skip


def _single_tasks(document: Mapping[str, Any]) -> list[str]:
    settings = document["guard"]
    return [
        "## How often a single task passes", "",
        f"Margin {settings['margin']} nats, level {settings['level']}. False alarms: not passed, though the change "
        "costs at most a quarter of the margin. Misses: passed, though it costs more than the margin. Columns are "
        "the true increase in nats; cells the share that passes, and of how many pairs.", "",
        *_passed(document["passed"]), "",
        "The same for what costs at most a quarter of the margin, by the planted size in nats:", "",
        *table(
            ["evidence (a half)", *(f"{size:g}" for size in document["sizes"])],
            [[row["evidence"], *map(_share, row["by_size"])] for row in document["passed"]],
        ),
    ]  # fmt: skip


def _whole_changes(document: Mapping[str, Any]) -> list[str]:
    return [
        "## How often a change of all tasks is accepted", "", *_passed([document["accepted"]]), "",
        "By the divergence alone, on one half; columns are the true increase of the task that loses most.",
    ]  # fmt: skip


def _divergence(document: Mapping[str, Any]) -> list[str]:
    spread = document["spread"]
    bounds = (f"{100 * share:.1f}% lie below the {float(level):.0%} bound" for level, share in spread["held"].items())
    rows = [
        (f"{row['low']:g} to {row['high']:g}", row["pairs"], f"{row['median']:+.4f}", f"{row['q95']:+.4f}")
        for row in document["quantiles"]
    ]
    return [
        "## Divergence and loss", "",
        *table("divergence of the worst group (nats) | pairs | true increase, median | 95% quantile", rows), "",
        f"The true increase lies {spread['deviation']:.3f} √D about the divergence D (root mean square, without "
        f"the noise of the truth itself); 95% of the pairs lie below D + 1.645 · {spread['quantile']:.3f} √D. "
        f"The guard takes {document['guard']['spread']}: with it {joined(bounds)}.",
    ]  # fmt: skip


def _time(document: Mapping[str, Any]) -> list[str]:
    timing = document["timing"]
    return [
        "## Time", "",
        f"{timing['tasks']} tasks with {timing['rows']} short texts each under one hypernetwork: mixed in every "
        f"batch {_listed(timing['together_seconds'])} s of one core's time, one task after the other "
        f"{_listed(timing['apart_seconds'])} s; the ratio is {timing['ratio']}. "
        f"The answers of the two ways differ by at most {timing['furthest']:.1e}.",
    ]  # fmt: skip


def _steps(document: Mapping[str, Any]) -> list[str]:
    """The guard's answers about whole steps, and their problems."""
    shares, counts = document["guard"]["shares"], document["steps_summary"]
    tasks, margin = len(document["tasks"]), document["guard"]["margin"]
    seeds = len(document["steps"][0]["shares"])
    return [
        "## Changes that the guard accepts", "",
        f"Whole steps, asked of `guard()` with all {tasks} tasks, none of which has held-out rows; {seeds} draws of "
        "the halves and canaries each. Cells count the draws in which so much of the step was let through; the true "
        "increase is that of the task that loses most, of what was let through the largest over the draws.",
        "",
        *table(
            ["step", "nats", "true increase by the whole", *(f"{Fraction(share)}" for share in shares), "none",
             "true increase by what was let through"],
            [[step["direction"], f"{step['size']:g}", f"{step['whole']:+.3f}",
              *(str(step["shares"].count(share) or "") for share in (*shares, 0.0)),
              f"{max(step['losses']):+.3f}" if any(step["shares"]) else NONE] for step in document["steps"]],
        ),
        "",
        f"Of {counts['harmless']} answers about steps that cost no task more than a quarter of the margin, "
        f"{counts['held_back']} held a part of it back and {counts['refused']} all of it (false alarms). "
        f"Of {counts['let_through']} times that something was let through, {counts['missed']} cost some task more than "
        f"{margin} nats (misses).",
    ]  # fmt: skip


def _passed(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    return table(
        ["evidence (a half)", *_bins(), "false alarms", "misses"],
        [
            [row["evidence"], *map(_cell, row["shares"]), _share(row["false_alarm"]), _share(row["miss"])]
            for row in rows
        ],
    )


def _bins() -> list[str]:
    return [f"≤ {high:g}" if high != EDGES[-1] else f"> {low:g}" for low, high in pairwise(EDGES)]


def _cell(cell: Sequence[Any]) -> str:
    count, share = cell
    return NONE if share is None else f"{_share(share)} ({count})"


def _share(share: float | None) -> str:
    return NONE if share is None else f"{100 * share:.0f}%"


def _listed(numbers: Sequence[float]) -> str:
    return ", ".join(f"{number:g}" for number in numbers)
