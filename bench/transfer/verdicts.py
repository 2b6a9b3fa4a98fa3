"""The numbers that were wanted, next to the findings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from bench.harness.figures import Figure, bootstrap_of_tasks, figure_of_tasks, signed
from bench.harness.page import VERDICTS, joined, met, table, table_row, unmeasured
from bench.transfer.cells import MORE_SAMPLES, MORE_SAMPLES_TASKS, TITLES, UNGATED, WITH_EVERY_SOURCE
from bench.transfer.figures import ASCENDING, METHODS, OURS, Key, Results
from onboard.domain.counting import counted

MOST_REGRET: Final = 1.0  # points
NEAR: Final = 2.0  # points that embedding-only may stay below LoRA, and be called comparable


def wanted_lines(results: Results, tasks: Sequence[str]) -> list[str]:
    """The numbers that were wanted, next to the findings."""
    text = [
        "## Targets", "",
        "Verdicts go by the value that was found: where its interval reaches across the bound, so few draws and test "
        "rows cannot tell.", "",
        *table(VERDICTS),
        *_regret_verdict(results),
        *_hand_verdict(results),
    ]  # fmt: skip
    for other in ("full", "lora", "prompt"):
        text += _gain_verdict(results, tasks, 32, OURS[0], Key(other), 0.0, "goal")
    for other, most in (("prompt", 0.0), ("lora", -NEAR)):
        text += _gain_verdict(results, tasks, 32, OURS[0], Key(other), most, "floor")
    for shots in ASCENDING:
        for other in ("adapters", "lora"):
            text += _gain_verdict(results, tasks, shots, OURS[1], Key(other), 0.0, "goal")
    for shots in MORE_SAMPLES:
        text += _gain_verdict(results, of_more(results), shots, OURS[0], OURS[1], -NEAR, "footnote 4")
    return [*text, ""]


def _regret_verdict(results: Results) -> list[str]:
    regrets = results.regrets("embedding", WITH_EVERY_SOURCE)
    what = f"regret of auto, embedding only, at most {MOST_REGRET:g} point, n = {joined(WITH_EVERY_SOURCE)}"
    planned = len(results.hands) * len(WITH_EVERY_SOURCE)
    if len(regrets) < planned:
        return [_unmeasured(what, len(regrets), planned)]
    mean = figure_of_tasks(regrets)
    low, high = bootstrap_of_tasks(regrets)
    shown = f"{mean.told(_decimals(mean, MOST_REGRET))} over {counted(mean.cells, 'cell')}"
    return [table_row(what, f"{shown}; bootstrap over tasks: {low:.1f} to {high:.1f}", met(mean.value <= MOST_REGRET))]


def _hand_verdict(results: Results) -> list[str]:
    text = []
    for method, _, _ in OURS:
        besides = results.beside_hand(method, ASCENDING)
        what = f"auto is not significantly below the hand-picked source, {METHODS[method]}"
        below = [f"{TITLES[beside.task]} at {beside.shots}" for beside in besides if beside.below]
        cells = sum(beside.p_value is not None for beside in besides)
        planned = len(ASCENDING) * sum(task not in UNGATED for task in results.hands)
        text.append(_unmeasured(what, cells, planned) if cells < planned or not planned else
                    table_row(what, f"below in {len(below)} of {counted(cells, 'cell')}", met(not below)))  # fmt: skip
    return text


def _gain_verdict(
    results: Results, tasks: Sequence[str], shots: int, key: Key, other: Key, most: float, kind: str
) -> list[str]:
    beyond = "above" if most == 0 else f"at most {-most:g} points below"
    what = f"{kind}: {METHODS[key.method]} {beyond} {METHODS[other.method]}, n = {shots}"
    gain = results.gain(tasks, shots, key, other)
    if gain is None:
        there = sum(results.measured(task, shots, key) and results.measured(task, shots, other) for task in tasks)
        return [_unmeasured(what, there, len(tasks))]
    return [
        table_row(
            what, signed(gain, _decimals(gain, most)), met(gain.value > most if most == 0 else gain.value >= most)
        )
    ]


def of_more(results: Results) -> list[str]:
    """The tasks that are learned from more rows, too."""
    return [task for task in MORE_SAMPLES_TASKS if task in results.hands]


def _unmeasured(what: str, cells: int, planned: int) -> str:
    return unmeasured(what, f"{cells} of {counted(planned, 'cell')}")


def _decimals(figure: Figure, bound: float) -> int:
    """A verdict is not hidden by rounding."""
    return 2 if round(figure.value, 1) == bound else 1
