"""The page: micro- and macro-F1 of tasks with several labels per text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from bench.harness.page import VERDICTS, Facts, joined, met, table, table_row, unmeasured, were
from bench.heldout.figures import Part, Results, plain, signed
from bench.heldout.plan import AS_THEY_COME, ArmRun
from bench.multilabel.plan import ARMS, LORA, LORA_ROWS, MINILM, OURS, ROWS, TFIDF
from onboard.domain.counting import counted

MICRO, MACRO, LRAP, EXACT = "micro_f1", "macro_f1", "lrap", "exact_match"
METRICS: Final = {MICRO: "micro-F1", MACRO: "macro-F1", LRAP: "ranking precision", EXACT: "exact match"}


def markdown(results: Results, facts: Facts) -> str:
    """The page."""
    lines = [
        "# Several labels per text", "",
        f"`{facts.command}` wrote this page, on `{facts.base}`. {len(results.tasks)} tasks that no base has seen, "
        f"{facts.draws} draws of rows as they come, at most {facts.test_rows} test rows each. Points, with 95% "
        "intervals over tasks of paired differences. Macro-F1 counts all labels that test rows or answers have, also "
        "those that a draw has no row of. LoRA learns independent scores through the label words by balanced binary "
        "cross-entropy; its threshold is 1/2, as in the one-vs-rest arms. Its recipe is the usual one of "
        "[transfer](transfer.md#how-each-was-trained), which was better than the gentle one on training rows of one "
        f"task (sentihood_aspects, 32 rows). It is measured with {joined(LORA_ROWS)} rows.", "",
        *_missing(results, facts.missing),
        "## Verdicts", "", *table(VERDICTS), *verdicts(results), "",
        "## Means over tasks", "", *_overall(results), "",
        "## By task", "", *_by_task(results), "",
    ]  # fmt: skip
    return "\n".join(lines)


def _missing(results: Results, missing: Sequence[ArmRun]) -> list[str]:
    """How many runs of each arm and number of rows are missing; nothing if all are there."""
    if not missing:
        return []
    lacking = Counter((run.arm, run.rows) for run in missing)
    there = Counter((run.arm, run.rows) for run in results.rows)
    counts = (
        f"{ARMS[arm]}, n = {rows}: {there[arm, rows]} of {there[arm, rows] + count} runs made"
        for (arm, rows), count in sorted(lacking.items())
    )
    return [
        f"**{were(len(missing), 'run')} not made ({'; '.join(counts)}).** Differences are of the draws that both have; "
        "means are of the runs there are.", "",
    ]  # fmt: skip


def verdicts(results: Results) -> list[str]:
    """A row for each of the numbers that were wanted."""
    lines = []
    for other, sizes in ((TFIDF, ROWS), (MINILM, ROWS), (LORA, LORA_ROWS)):
        for rows in sizes:
            for metric in (MICRO, MACRO):
                what = f"{METRICS[metric]} above {ARMS[other]}, n = {rows}"
                gain = results.gain(_part(results, rows), OURS, other, metric)
                if gain is None:
                    lines.append(unmeasured(what))
                    continue
                pairs = len(_draws(results, rows, OURS) & _draws(results, rows, other))
                difference = f"{signed(gain)}, {counted(gain.tasks, 'task')}, {counted(pairs, 'draw')}"
                lines.append(table_row(what, difference, met(gain.value > 0)))
    return lines


def _draws(results: Results, rows: int, arm: str) -> set[tuple[str, int]]:
    """Tasks and draws that an arm has answered."""
    return {(run.task, run.draw) for run in results.rows if run.arm == arm and run.rows == rows}


def _part(results: Results, rows: int) -> Part:
    return results.part(rows, AS_THEY_COME)


def _overall(results: Results) -> list[str]:
    lines = []
    for rows in ROWS:
        for arm, title in ARMS.items():
            means = [results.mean(_part(results, rows), arm, metric) for metric in METRICS]
            seconds = results.mean(_part(results, rows), arm, "seconds")
            if means[0] is not None:
                runs = len(_draws(results, rows, arm))
                lines.append((rows, title, means[0].tasks, runs, *map(plain, means), plain(seconds)))
    return table(["n", "method", "tasks", "runs", *METRICS.values(), "seconds"], lines)


def _by_task(results: Results) -> list[str]:
    present = {run.arm for run in results.rows}
    arms, lines = [arm for arm in ARMS if arm in present], []
    for task in results.tasks:
        for rows in ROWS:
            part = _part(results, rows).among([task])
            cells = (" / ".join(plain(results.mean(part, arm, metric)) for metric in (MICRO, MACRO)) for arm in arms)
            lines.append((task, rows, *cells))
    return ["Micro-F1 / macro-F1.", "", *table(["task", "n", *arms], lines)]
