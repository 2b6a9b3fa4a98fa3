"""The page: accuracy without a labelled row."""

from __future__ import annotations

from typing import Final

from bench.harness.page import NONE, VERDICTS, Facts, met, table, table_row, unmeasured, were
from bench.heldout.figures import MACRO_F1, Results, plain, signed
from bench.zero_rows.plan import ABOUT, ARMS, CHANCE, DESCRIBED, MINILM, MINILM_DESCRIBED, ONBOARD
from onboard.domain.counting import counted

LEAST: Final = 52.0
AHEAD: Final = 3.0  # of MiniLM's cosines
ROWS: Final = 0


def markdown(results: Results, facts: Facts) -> str:
    """The page."""
    lines = [
        "# No labeled rows: how far label words get", "",
        f"`{facts.command}` wrote this page, on `{facts.base}`. Held-out tasks with labels, at most {facts.test_rows} "
        "test rows each, all labels. Accuracy in points, with 95% intervals over tasks of paired differences. We wrote "
        "the descriptions, a sentence for each label, from its name and two training rows of the task, before any was "
        "measured. Onboard's readout is that of a job without rows; its unlabeled texts are the test rows.", "",
        *([f"**{were(len(facts.missing), 'run')} not made.** Figures are of the others.", ""] if facts.missing else []),
        "## Targets", "", *table(VERDICTS), *verdicts(results), "",
        "## Mean over tasks", "", *_overall(results), "",
        "## By task", "", *_by_task(results), "",
    ]  # fmt: skip
    return "\n".join(lines)


def verdicts(results: Results) -> list[str]:
    """A row for each target."""
    part, lines = results.part(ROWS), []
    for arm in (ONBOARD, DESCRIBED):
        what, reached = f"at least {LEAST:g} on the mean: {ARMS[arm]}", results.mean(part, arm)
        lines.append(table_row(what, plain(reached), met(reached.value >= LEAST)) if reached else unmeasured(what))
    for ours, theirs in ((ONBOARD, MINILM), (ONBOARD, ABOUT), (DESCRIBED, MINILM_DESCRIBED)):
        what = f"at least {AHEAD:g} points above {ARMS[theirs]}"
        gain = results.gain(part, ours, theirs)
        measured = "" if gain is None else f"{signed(gain)}, {counted(gain.tasks, 'task')}"
        lines.append(unmeasured(what) if gain is None else table_row(what, measured, met(gain.value >= AHEAD)))
    return lines


def _overall(results: Results) -> list[str]:
    part, lines = results.part(ROWS), []
    for arm, title in ARMS.items():
        mean = results.mean(part, arm)
        if mean is not None:
            above = NONE if arm == CHANCE else signed(results.gain(part, arm, CHANCE))
            macro = NONE if arm == CHANCE else plain(results.mean(part, arm, MACRO_F1))
            lines.append((title, mean.tasks, plain(mean), macro, above))
    return table("arm | tasks | accuracy | macro-F1 | above chance", lines)


def _by_task(results: Results) -> list[str]:
    present = {run.arm for run in results.rows}
    arms, lines = [arm for arm in ARMS if arm in present], []
    for task, family in results.tasks.items():
        part = results.part(ROWS).among([task])
        lines.append((task, family, *(plain(results.mean(part, arm)) for arm in arms)))
    return table(["task", "family", *arms], lines)
