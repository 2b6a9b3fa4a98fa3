"""The page: the later tasks of each series with and without its earlier ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from bench.harness.page import NONE, VERDICTS, Facts, met, table, table_row, unmeasured, were
from bench.heldout.figures import ACCURACY, MACRO_F1, Mean, Results, plain, signed
from bench.series.plan import ARMS, DEFAULT_FEW, FEW, ROWS, WITHOUT, series_of
from onboard.domain.counting import counted

LEAST: Final = 3.0  # points that the first half is to add


def markdown(results: Results, facts: Facts) -> str:
    """The page."""
    lines = [
        "# Series of related tasks: what the earlier ones add", "",
        f"`{facts.command}` wrote this page, on `{facts.base}`. The later half of each series is learned with and "
        f"without its first half as earlier tasks of the installation: {ROWS} labelled rows a task in all, "
        f"{counted(facts.draws, 'draw')}, at most {facts.test_rows} test rows. Accuracy in points; in brackets 95% "
        "intervals over tasks of paired differences. A label without one of the rows cannot be answered, and its test "
        "rows count as wrong. The first half has as many rows a task, or all that it has.", "",
        *([f"**{were(len(facts.missing), 'run')} not made.** Figures are of the others.", ""] if facts.missing else []),
        "## Targets", "", *table(VERDICTS), *verdicts(results), "",
        "## Mean over the later tasks", "", *_overall(results), "",
        "## By series", "", *_by_series(results), "",
        "## By task", "", *_by_task(results), "",
    ]  # fmt: skip
    return "\n".join(lines)


def verdicts(results: Results) -> list[str]:
    """The first half's gain, of the default and of the readout in closed form."""
    lines = []
    for arm in (DEFAULT_FEW, FEW):
        what = f"at least {LEAST:g} points on the mean: {ARMS[arm]}"
        gain = _gain(results, arm)
        found = "" if gain is None else f"{signed(gain)}, {counted(gain.tasks, 'task')}"
        lines.append(unmeasured(what) if gain is None else table_row(what, found, met(gain.value >= LEAST)))
    return lines


def _gain(results: Results, arm: str, tasks: Sequence[str] | None = None) -> Mean | None:
    part = results.part(ROWS)
    return results.gain(part if tasks is None else part.among(tasks), arm, WITHOUT[arm]) if arm in WITHOUT else None


def _arms(results: Results) -> list[str]:
    present = {run.arm for run in results.rows}
    return [arm for arm in ARMS if arm in present]


def _overall(results: Results) -> list[str]:
    part, lines = results.part(ROWS), []
    for arm in _arms(results):
        mean = results.mean(part, arm, ACCURACY)
        gain = _gain(results, arm)
        macro = plain(results.mean(part, arm, MACRO_F1))
        lines.append((ARMS[arm], mean.tasks if mean else 0, plain(mean), macro, signed(gain) if gain else NONE))
    return table("learned | tasks | accuracy | macro-F1 | above the same without the first half", lines)


def _by_series(results: Results) -> list[str]:
    groups: dict[str, list[str]] = {}
    for task in results.tasks:
        groups.setdefault(series_of(task), []).append(task)
    return _grouped(results, groups, "series")


def _by_task(results: Results) -> list[str]:
    return _grouped(results, {task: [task] for task in sorted(results.tasks)}, "task")


def _grouped(results: Results, groups: dict[str, list[str]], head: str) -> list[str]:
    """A row for each group: accuracy of every arm, and the first half's gain where there is one."""
    arms, lines = _arms(results), []
    with_first = [arm for arm in arms if arm in WITHOUT]
    for group, tasks in groups.items():
        part = results.part(ROWS).among(tasks)
        means = (plain(results.mean(part, arm)) for arm in arms)
        gains = (signed(_gain(results, arm, tasks)) for arm in with_first)
        lines.append((group, len(tasks), *means, *gains))
    return table([head, "tasks", *arms, *(f"{arm} less {WITHOUT[arm]}" for arm in with_first)], lines)
