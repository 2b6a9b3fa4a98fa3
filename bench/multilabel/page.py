"""The page: micro- and macro-F1 of tasks with several labels per text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from bench.harness.page import VERDICTS, met, table, table_row, unmeasured, were
from bench.heldout.figures import Part, Results, plain, signed
from bench.heldout.plan import AS_THEY_COME, Run
from bench.multilabel.plan import ARMS, MINILM, OURS, ROWS, TFIDF

MICRO, MACRO, LRAP, EXACT = "micro_f1", "macro_f1", "lrap", "exact_match"
METRICS: Final = {MICRO: "micro-F1", MACRO: "macro-F1", LRAP: "ranking precision", EXACT: "exact match"}


@dataclass(frozen=True)
class Facts:
    """How the page was made.

    Args:
        command: that makes it again.
        base: its name.
        draws: of the rows.
        test_rows: most of a task.
        missing: runs of the plan that were not made.
    """

    command: str
    base: str
    draws: int
    test_rows: int
    missing: Sequence[Run]


def markdown(results: Results, facts: Facts) -> str:
    """The page."""
    lines = [
        "# Several labels per text", "",
        f"`{facts.command}` wrote this page, on `{facts.base}`. {len(results.tasks)} tasks that no base has seen, "
        f"{facts.draws} draws of rows as they come, at most {facts.test_rows} test rows each. Points, with 95% "
        "intervals over tasks of paired differences. Macro-F1 counts all labels that test rows or answers have, also "
        "those that a draw has no row of. LoRA was not measured.", "",
        *([f"**{were(len(facts.missing), 'run')} not made.** Figures are of the others.", ""] if facts.missing else []),
        "## Verdicts", "", *table(VERDICTS), *verdicts(results), "",
        "## Means over tasks", "", *_overall(results), "",
        "## By task", "", *_by_task(results), "",
    ]  # fmt: skip
    return "\n".join(lines)


def verdicts(results: Results) -> list[str]:
    """A row for each of the numbers that were wanted."""
    lines = []
    for other in (TFIDF, MINILM):
        for rows in ROWS:
            for metric in (MICRO, MACRO):
                what = f"{METRICS[metric]} above {ARMS[other]}, n = {rows}"
                gain = results.gain(_part(results, rows), OURS, other, metric)
                found = "" if gain is None else signed(gain)
                lines.append(unmeasured(what) if gain is None else table_row(what, found, met(gain.value > 0)))
    return lines


def _part(results: Results, rows: int) -> Part:
    return results.part(rows, AS_THEY_COME)


def _overall(results: Results) -> list[str]:
    lines = []
    for rows in ROWS:
        for arm, title in ARMS.items():
            means = [results.mean(_part(results, rows), arm, metric) for metric in METRICS]
            seconds = results.mean(_part(results, rows), arm, "seconds")
            if means[0] is not None:
                lines.append((rows, title, means[0].tasks, *map(plain, means), plain(seconds)))
    return table(["n", "method", "tasks", *METRICS.values(), "seconds"], lines)


def _by_task(results: Results) -> list[str]:
    present = {run.arm for run in results.rows}
    arms, lines = [arm for arm in ARMS if arm in present], []
    for task in results.tasks:
        for rows in ROWS:
            part = _part(results, rows).among([task])
            cells = (" / ".join(plain(results.mean(part, arm, metric)) for metric in (MICRO, MACRO)) for arm in arms)
            lines.append((task, rows, *cells))
    return ["Micro-F1 / macro-F1.", "", *table(["task", "n", *arms], lines)]
