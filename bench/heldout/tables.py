"""The tables of the page: by number of rows, by family, imbalance, calibration, deficits, what the probe takes."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from bench.harness.page import NONE, table, table_row
from bench.harness.rows import Row
from bench.heldout.figures import ACCURACY, CALIBRATION, LOSS, MACRO_F1, Mean, Part, Results, plain, signed
from bench.heldout.plan import (
    ARMS,
    AS_THEY_COME,
    BALANCED,
    DEFAULT,
    EMBEDDING,
    LEARNED,
    MINILM,
    MINILM_READOUT,
    NATURAL_ARMS,
    NATURAL_ROWS,
    READOUT,
    ROWS,
    SETFIT,
    TFIDF,
    TRAINED,
)
from bench.heldout.suites import Suite
from bench.heldout.verdicts import DEFICIT, deficits, imbalanced

ASCENDING: Final = tuple(sorted(ROWS))
_TIMED: Final = (*LEARNED, *TRAINED, SETFIT)  # what the others take lies in features that are read once
_SHORT: Final = {
    DEFAULT: "default", EMBEDDING: "embedding", "random": "random start", READOUT: "readout", "lora": "LoRA",
    "full": "full", SETFIT: "SetFit", MINILM_READOUT: "MiniLM readout", MINILM: "MiniLM", "encoder": "our encoder",
    TFIDF: "TF-IDF", BALANCED: "balanced TF-IDF",
}  # fmt: skip


def of_rows(results: Results, rows: int) -> list[str]:
    """All arms with so many rows; nothing where nothing is measured."""
    part, lines = results.part(rows), []
    for arm in results.arms:
        accuracy = results.mean(part, arm)
        if arm != BALANCED and accuracy:  # which is of other tasks
            lines.append(_of_arm(results, part, arm, accuracy))
    head = "arm | tasks | accuracy | macro-F1 | log-loss | default less it | its macro-F1 less it | seconds"
    return [f"## n = {rows}", "", *table(head), *lines, ""] if lines else []


def _of_arm(results: Results, part: Part, arm: str, accuracy: Mean) -> str:
    others = [plain(results.mean(part, arm, MACRO_F1)), plain(results.mean(part, arm, LOSS), 3)]
    gains = [
        NONE if arm == DEFAULT else signed(results.gain(part, DEFAULT, arm, metric)) for metric in (ACCURACY, MACRO_F1)
    ]
    spent = [row["seconds"] for row in results.of_arm(part, arm) if "device" not in row]  # of the processor
    seconds = f"{statistics.fmean(spent):.0f}" if arm in _TIMED and spent else NONE
    return table_row(ARMS[arm], accuracy.tasks, plain(accuracy), *others, *gains, seconds)


def by_group(
    results: Results, suite: Suite, rows: int, one: str = DEFAULT, others: Sequence[str] = (MINILM, SETFIT)
) -> list[str]:
    """Accuracy of each arm on each group of tasks, and what one arm gains over each of the others that was measured."""
    arms = [arm for arm in results.arms if arm != BALANCED and results.mean(results.part(rows), arm)]
    others = [arm for arm in others if arm in arms]
    head = [suite.by, "tasks", *(_SHORT[arm] for arm in arms), *(f"{_SHORT[one]} less {_SHORT[arm]}" for arm in others)]
    lines = []
    for group, tasks in suite.groups(results).items():
        part = results.part(rows).among(tasks)
        means = [results.mean(part, arm) for arm in arms]
        if counts := [mean.tasks for mean in means if mean]:
            gains = (signed(results.gain(part, one, other)) for other in others)
            lines.append(table_row(group, max(counts), *map(plain, means), *gains))
    return [f"## By {suite.by}, n = {rows}", "", *table(head), *lines, ""] if lines else []


def of_imbalance(results: Results) -> list[str]:
    """Macro-F1 where a label is rare."""
    parts = {f"n = {rows}": imbalanced(results, rows) for rows in ASCENDING}
    natural = imbalanced(results, NATURAL_ROWS, AS_THEY_COME)
    text = [
        "## Tasks with a label under 20%: macro-F1", "",
        "Balanced draws, tested on rows as they come; in the last column the rows to learn from come as they are, too. "
        "In brackets what the default has more.", "",
        *table(["arm", *parts, f"{NATURAL_ROWS} rows as they come"]),
    ]  # fmt: skip
    lines = []
    for arm in results.arms:
        cells = [_beside(results, part, arm) for part in parts.values()]
        cells.append(_beside(results, natural, arm) if arm in NATURAL_ARMS else NONE)
        if set(cells) != {NONE}:
            lines.append(table_row(ARMS[arm], *cells))
    return [*text, *lines, "", *_never_answered(results)] if lines else []


def _beside(results: Results, part: Part, arm: str) -> str:
    gain = results.gain(part, DEFAULT, arm, MACRO_F1)
    reach = f" [{signed(gain)}]" if gain and arm != DEFAULT else ""
    return f"{plain(results.mean(part, arm, MACRO_F1))}{reach}"


def _never_answered(results: Results) -> list[str]:
    """Where the default leaves out a label that has many rows."""
    parts = [results.part(rows, sampling) for rows in ASCENDING for sampling in ("balanced", AS_THEY_COME)]
    rows = [row for part in parts for row in results.of_arm(part, DEFAULT) if row.get("unanswered")]
    if not rows:
        return []
    cells = ((row["task"], row["rows"], row["draw"], row["sampling"], ", ".join(row["unanswered"])) for row in rows)
    return ["Labels that the default never answers:", "", *table("task | n | draw | rows | labels", cells), ""]


def of_calibration(results: Results) -> list[str]:
    """Expected calibration error of each arm, by the number of rows."""
    parts = [results.part(rows) for rows in ASCENDING]
    lines = [
        table_row(ARMS[arm], *(plain(results.mean(part, arm, CALIBRATION), 3) for part in parts))
        for arm in results.arms
        if arm != BALANCED and any(results.mean(part, arm, CALIBRATION) for part in parts)
    ]
    head = ["arm", *(f"n = {rows}" for rows in ASCENDING)]
    return ["## Expected calibration error, 15 bins", "", *table(head), *lines, ""] if lines else []


def of_deficits(results: Results) -> list[str]:
    """Tasks where the default is below the readout alone."""
    lines = []
    for rows in ASCENDING:
        part = results.part(rows)
        own, alone = (results.by_task(part, arm, ACCURACY) for arm in (DEFAULT, READOUT))
        for task, gain in sorted(deficits(results, rows).items(), key=lambda pair: pair[1]):
            shares = {row["draw"]: row["share"] for row in _of_task(results, part, task)}
            shown = ", ".join(f"{shares[draw]:g}" for draw in sorted(shares))
            lines.append(table_row(task, results.tasks[task], rows, plain_of(own, task), plain_of(alone, task),
                                   f"{gain:+.1f}", shown))  # fmt: skip
    head = "task | family | n | default | readout alone | difference | share of the readout, by draw"
    title = f"## Where the default is more than {DEFICIT:g} point below the readout alone"
    return [title, "", *(table(head) if lines else ["Nowhere among what was measured."]), *lines, ""]


def plain_of(values: Mapping[str, float], task: str) -> str:
    """The value of one task."""
    return f"{values[task]:.1f}" if task in values else NONE


def _of_task(results: Results, part: Part, task: str) -> list[Row]:
    return results.of_arm(part.among([task]), DEFAULT)


def of_probe(results: Results, suite: Suite) -> list[str]:
    """Whether what `auto` takes is of the task's family, where the base has one."""
    text = [
        "## Cost of the probe", "",
        "Runs whose start is of the task's family (top-1), or one of the first three tasks among its candidates "
        "(top-3), of those runs whose family the base has; a made task counts as the source that its name bears. Of "
        "the other families, what it took stands in the last column.", "",
        *table([suite.by, "in the base", *(f"n = {rows}: top-1, top-3" for rows in ASCENDING), "taken most often"]),
    ]  # fmt: skip
    lines = [line for group, own in suite.groups(results).items() if (line := _of_group(results, group, own))]
    return [*text, *lines, _probe_row(results, "**all**", results.in_base), ""] if lines else []


def _of_group(results: Results, group: str, tasks: Sequence[str]) -> str:
    runs = [row for rows in ASCENDING for row in _probed(results, rows, tasks)]
    return _probe_row(results, group, tasks) if runs else ""


def _probe_row(results: Results, name: str, tasks: Iterable[str]) -> str:
    runs = [_probed(results, rows, tasks) for rows in ASCENDING]
    every = [row for of_rows in runs for row in of_rows]
    present = any(row["in_base"] for row in every)
    cells = [_hits(of_rows) if present else NONE for of_rows in runs]
    taken = [row["start_family"] or row["chosen"] for row in every]
    often = sorted(set(taken), key=lambda start: (-taken.count(start), start))[:3]
    return table_row(name, "yes" if present else "no", *cells, ", ".join(often))


def _probed(results: Results, rows: int, tasks: Iterable[str]) -> list[Row]:
    part = results.part(rows).among(frozenset(tasks))
    return results.of_arm(part, DEFAULT) or results.of_arm(part, EMBEDDING)


def _hits(rows: Sequence[Row]) -> str:
    if not rows:
        return NONE
    first, three = (sum(bool(row[key]) for row in rows) for key in ("top1", "top3"))
    return f"{first} and {three} of {len(rows)}"


def of_tuning(results: Results) -> list[str]:
    """How often the default tuned, and how often that was kept."""
    lines = []
    for rows in ASCENDING:
        runs = results.of_arm(results.part(rows), DEFAULT)
        if runs:
            tried, kept_runs, weak = (sum(row[key] for row in runs) for key in ("tuning_tried", "tuning_kept", "weak"))
            share = statistics.fmean(row["share"] for row in runs)
            lines.append(table_row(rows, len(runs), tried, kept_runs, weak, f"{share:.2f}"))
    head = "n | runs | tuning tried | kept | called weak | mean share of the readout"
    return ["## Decisions of the default", "", *table(head), *lines, ""] if lines else []


def of_regression(results: Results) -> list[str]:
    """Spearman's correlation of tasks whose labels are numbers."""
    parts = [results.part(rows) for rows in ASCENDING]
    lines = [
        table_row(ARMS[arm], *(plain(results.mean(part, arm, "spearman")) for part in parts))
        for arm in results.arms
        if any(results.mean(part, arm, "spearman") for part in parts)
    ]
    tasks = sorted({run.task for run, row in results.rows.items() if "spearman" in row})
    head = ["arm", *(f"n = {rows}" for rows in ASCENDING)]
    title = f"## Labels that are numbers ({', '.join(tasks)}): Spearman's correlation times 100"
    return [title, "", *table(head), *lines, ""] if lines else []
