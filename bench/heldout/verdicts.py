"""Targets and results."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from bench.harness.page import joined, met, table_row, unmeasured
from bench.heldout.figures import ACCURACY, CALIBRATION, MACRO_F1, Mean, Part, Results, plain, signed
from bench.heldout.plan import (
    ARMS,
    AS_THEY_COME,
    BALANCED,
    DEFAULT,
    EMBEDDING,
    ENCODER,
    MANY_ROWS,
    MINILM,
    MINILM_READOUT,
    NATURAL_ROWS,
    RANDOM,
    READOUT,
    SETFIT,
    TFIDF,
    TRAINED,
)
from onboard.domain.counting import counted

JUDGED_AT: Final = (16, 32)
EVERY: Final = (4, 16, 32, 100)
RIVALS: Final = (*TRAINED, MINILM, TFIDF, SETFIT, MINILM_READOUT)  # what somebody would take instead
DEFICIT: Final = 1.0  # points that the default may be below the readout alone on a task
MOST_CALIBRATION: Final = 0.06
CALIBRATED_AT: Final = 32


@dataclass(frozen=True)
class Bar:
    """How far an arm is to be above another, in points on the mean over tasks.

    Args:
        arm, other: of whom.
        title: in words.
        least: points; without any it is to be above.
        rows: where it is judged.
        level: whether as good is good enough.
        metric: that is compared.
    """

    arm: str
    other: str
    title: str
    least: float = 0.0
    rows: Sequence[int] = JUDGED_AT
    level: bool = False
    metric: str = ACCURACY

    def reached(self, gain: Mean) -> bool:
        """Whether a gain is enough."""
        return gain.value >= self.least if self.least or self.level else gain.value > 0

    def line(self, results: Results, part: Part, where: str = "") -> str:
        """Its row of the table, judged on some runs."""
        what = f"{self.title}, {where or f'n = {part.rows}'}"
        gain = results.gain(part, self.arm, self.other, self.metric)
        if gain is None:
            return unmeasured(what)
        digits = 2 if round(gain.value, 1) == self.least else 1  # a verdict is not hidden by rounding
        return table_row(what, f"{signed(gain, digits)}, {counted(gain.tasks, 'task')}", met(self.reached(gain)))


BARS: Final = (
    Bar(ENCODER, MINILM, "logistic regression on the encoder's features at or above MiniLM's", level=True),
    Bar(DEFAULT, RANDOM, "the default at least 3 points above random start", 3.0),
    *(Bar(DEFAULT, arm, f"the default above {ARMS[arm]}", rows=EVERY) for arm in RIVALS),
    Bar(DEFAULT, TFIDF, "the default at least 8 points above TF-IDF", 8.0),
    *(
        Bar(DEFAULT, READOUT, f"the default at least {least:g} points above the readout alone", least, (rows,))
        for rows, least in ((4, 4.0), (16, 2.0), (32, 1.5))
    ),
)
LEVELS: Final = (("", 4, 46.0), ("", 16, 52.0), ("", 32, 55.0), ("", 100, 61.0))  # task or all, rows, accuracy at least
TARGET_ROWS: Final = (16, 32, 100)
TARGET_BARS: Final = (
    *(Bar(DEFAULT, arm, f"the default above {ARMS[arm]}", rows=TARGET_ROWS) for arm in RIVALS),
    Bar(EMBEDDING, "lora", "its embedding alone at most 1 point below LoRA, r = 8", -1.0, TARGET_ROWS),
)
TARGET_LEVELS: Final = (("", 16, 65.0), ("", 32, 68.0), ("", 100, 72.0), ("cb", 32, 55.0), ("trec", 32, 60.0))
AUTO_START: Final = Bar(
    EMBEDDING, RANDOM, "auto at least 4 points above random start, embedding alone, family in the base", 4.0, (4, 16)
)
IMBALANCE: Final = Bar(
    DEFAULT, BALANCED, "macro-F1 at least 5 points above balanced TF-IDF, tasks with a label under 20%", 5.0,
    metric=MACRO_F1,
)  # fmt: skip


def held_out_verdicts(results: Results) -> list[str]:
    """The targets of the tasks that designs are chosen by."""
    return [
        *_levels(results, LEVELS),
        *_lines(results, BARS),
        *(_by_family(results, rival) for rival in RIVALS),
        _deficits(results),
        *(AUTO_START.line(results, results.part(rows).among(results.in_base)) for rows in AUTO_START.rows),
        *(IMBALANCE.line(results, imbalanced(results, rows)) for rows in IMBALANCE.rows),
        IMBALANCE.line(results, imbalanced(results, NATURAL_ROWS, AS_THEY_COME), f"{NATURAL_ROWS} rows as they come"),
        _unanswered(results, "balanced"), _unanswered(results, AS_THEY_COME),
        _calibration(results),
    ]  # fmt: skip


def target_verdicts(results: Results) -> list[str]:
    """The targets of the seven targets, which no design is chosen by."""
    return [
        *_levels(results, TARGET_LEVELS),
        *_lines(results, TARGET_BARS),
        *(_by_family(results, rival, "task") for rival in RIVALS),
    ]


def _lines(results: Results, bars: Sequence[Bar]) -> list[str]:
    return [bar.line(results, results.part(rows)) for bar in bars for rows in bar.rows]


def _levels(results: Results, levels: Sequence[tuple[str, int, float]]) -> list[str]:
    """The default's accuracy next to what it should at least be, on a task or on the mean of all."""
    lines = []
    for task, rows, least in levels:
        what = f"the default at least {least:g}{f' on {task}' if task else ' on the mean'}, n = {rows}"
        part = results.part(rows)
        reached = results.mean(part.among([task]) if task else part, DEFAULT)
        lines.append(table_row(what, plain(reached), met(reached.value >= least)) if reached else unmeasured(what))
    return lines


def gains_by_family(results: Results, rival: str, rows: int, by: str = "family") -> dict[str, float]:
    """The gain of the default over a rival on each family of tasks (or each task) that both have."""
    gains: dict[str, list[float]] = {}
    for task, gain in results.by_task(results.part(rows), DEFAULT, ACCURACY, rival).items():
        gains.setdefault(results.tasks[task] if by == "family" else task, []).append(gain)
    return {group: statistics.fmean(of_group) for group, of_group in gains.items()}


def _by_family(results: Results, rival: str, by: str = "family") -> str:
    what = f"on no {by} more than {DEFICIT:g} point below {ARMS[rival]}"
    gains = {rows: gains_by_family(results, rival, rows, by) for rows in EVERY}
    measured = [rows for rows in EVERY if gains[rows]]
    if not measured:
        return unmeasured(what)
    below = [
        f"{group} {gain:+.1f} (n = {rows})"
        for rows in measured
        for group, gain in sorted(gains[rows].items(), key=lambda pair: pair[1])
        if round(gain, 2) < -DEFICIT
    ]
    where = f"n = {', '.join(map(str, measured))}: {len(below)} of {sum(map(len, gains.values()))}"
    return table_row(what, "; ".join([where, *below]), met(not below))


def deficits(results: Results, rows: int) -> dict[str, float]:
    """Tasks where the default is further below the readout alone than it may be, and how far."""
    gains = results.by_task(results.part(rows), DEFAULT, ACCURACY, READOUT)
    return {task: gain for task, gain in gains.items() if round(gain, 2) < -DEFICIT}


def imbalanced(results: Results, rows: int, sampling: str = "balanced") -> Part:
    """The runs of tasks with a rare label."""
    return results.part(rows, sampling).among(results.imbalanced)


def _deficits(results: Results) -> str:
    what = f"on no task more than {DEFICIT:g} point below the readout alone, n = {joined(JUDGED_AT)}"
    gains = [results.by_task(results.part(rows), DEFAULT, ACCURACY, READOUT) for rows in JUDGED_AT]
    measured = {task for of_rows in gains for task in of_rows}
    if not measured:
        return unmeasured(what)
    below = {task for rows in JUDGED_AT for task in deficits(results, rows)}
    return table_row(what, f"{len(below)} of {counted(len(measured), 'task')}", met(not below))


def _unanswered(results: Results, sampling: str) -> str:
    how = "as they come" if sampling == AS_THEY_COME else "balanced"
    what = f"no label of more than {MANY_ROWS} training rows without an answer, {NATURAL_ROWS} rows {how}"
    runs = results.of_arm(results.part(NATURAL_ROWS, sampling), DEFAULT)
    if not runs:
        return unmeasured(what)
    lacking = [row for row in runs if row.get("unanswered")]
    return table_row(what, f"{len(lacking)} of {counted(len(runs), 'run')} lack one", met(not lacking))


def _calibration(results: Results) -> str:
    what = f"expected calibration error at most {MOST_CALIBRATION:g}, n = {CALIBRATED_AT}"
    values = results.by_task(results.part(CALIBRATED_AT), DEFAULT, CALIBRATION)
    if not values:
        return unmeasured(what)
    error = statistics.fmean(values.values())
    return table_row(what, f"{error:.3f}, {counted(len(values), 'task')}", met(error <= MOST_CALIBRATION))
