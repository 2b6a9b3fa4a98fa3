"""The page: accuracy by the number of tasks that were learned before, and what each doubling adds."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from bench.accumulation.plan import COUNTS, DEFAULT, KINDS, READOUT, ROWS, arm_of
from bench.harness.earlier_tasks import LESSON_ROWS
from bench.harness.page import NONE, VERDICTS, Facts, met, table, table_row, unmeasured, were
from bench.heldout.figures import CALIBRATION, Results, plain, signed
from onboard.domain.counting import counted

LEAST: Final = {4: 4.0, 16: 2.0}  # points that all tasks are to add, by rows of the new one


@dataclass(frozen=True)
class AccumulationFacts(Facts):
    """How the page was made; `sources`: how many source tasks there are."""

    sources: int


def markdown(results: Results, facts: AccumulationFacts) -> str:
    """The page."""
    lines = [
        "# Benefit of earlier tasks", "",
        f"`{facts.command}` wrote this page, on `{facts.base}`. A new task is learned from n labelled rows after 0 to "
        f"{facts.sources} source tasks. Tested on held-out tasks ({counted(facts.draws, 'draw')}, at most "
        f"{facts.test_rows} test rows each); accuracy in points, with 95% intervals over tasks of paired differences.",
        "",
        "Each draw takes the source tasks in another order, and fewer tasks are the first of more. A source teaches "
        f"by {LESSON_ROWS} rows. The readout is fitted in closed form, and drawn towards the prior of these tasks. "
        "The default is a whole job on a base that knows these tasks only: their prior, and their embeddings as starts "
        "(of the made tasks those that bear their names; with all sources, all of them).", "",
        *([f"**{were(len(facts.missing), 'run')} not made.** Figures are of the others.", ""] if facts.missing else []),
        "## Targets", "", *table(VERDICTS), *verdicts(results), "",
        *(line for kind in KINDS for line in _of_kind(results, kind)),
    ]  # fmt: skip
    return "\n".join(lines)


def verdicts(results: Results) -> list[str]:
    """A row for each target; those of the default where it was measured, else readouts."""
    arms = {arm for run in results.rows for arm in (run.arm,)}
    kind = DEFAULT if arm_of(DEFAULT, COUNTS[-1]) in arms else READOUT
    return [*(_total(results, kind, rows) for rows in ROWS), *(_rising(results, kind, rows) for rows in ROWS)]


def _total(results: Results, kind: str, rows: int) -> str:
    most = COUNTS[-1]
    what = f"{most} tasks at least {LEAST[rows]:g} points above none, n = {rows} ({kind})"
    gain = results.gain(results.part(rows), arm_of(kind, most), arm_of(kind, 0))
    if gain is None:
        return unmeasured(what)
    return table_row(what, f"{signed(gain)}, {counted(gain.tasks, 'task')}", met(gain.value >= LEAST[rows]))


def _rising(results: Results, kind: str, rows: int) -> str:
    what = f"more with every doubling, n = {rows} ({kind})"
    part = results.part(rows)
    gains = [results.gain(part, arm_of(kind, more), arm_of(kind, fewer)) for fewer, more in pairwise(COUNTS)]
    if any(gain is None for gain in gains):
        return unmeasured(what)
    return table_row(what, ", ".join(f"{gain.value:+.1f}" for gain in gains if gain),
                     met(all(gain.value > 0 for gain in gains if gain)))  # fmt: skip


def _of_kind(results: Results, kind: str) -> list[str]:
    lines = []
    for rows in ROWS:
        part = results.part(rows)
        before = None
        for count in COUNTS:
            arm = arm_of(kind, count)
            mean = results.mean(part, arm)
            if mean is None:
                continue
            above = signed(results.gain(part, arm, arm_of(kind, 0))) if count else NONE
            step = signed(results.gain(part, arm, before)) if before else NONE
            error = plain(results.mean(part, arm, CALIBRATION), 3)
            lines.append(table_row(rows, count, mean.tasks, plain(mean), above, step, error))
            before = arm
    head = "n | tasks before | held-out tasks | accuracy | above none | above the row before | calibration error"
    return [f"## {KINDS[kind][0].upper()}{KINDS[kind][1:]}", "", *table(head), *lines, ""] if lines else []
