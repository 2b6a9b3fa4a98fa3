"""The page of bench/results/serve.md, its verdicts and its picture."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from bench.harness.figures import Figure
from bench.harness.lines import Line, svg
from bench.harness.page import NONE, VERDICTS, made_on, met, table
from bench.serve.arms import ARMS, MERGED, ONE, OURS, RECENT
from bench.serve.drawing import DRAWS
from bench.serve.loras import LORA_RANK, SLOTS

MANY: Final = (1024, 10_000)
LEAST_OF_ONE: Final = 0.8
LEAST_ANYWHERE: Final = 0.7
LEAST_OF_MERGED: Final = 0.85
MOST_BYTES: Final = 4096
MOST_COLD: Final = 1.5
PICTURED: Final = "uniform"
_SERVICE: Final = ("cold_milliseconds", "warm_milliseconds", "cold_to_warm", "bytes_a_task")


def page(document: Mapping[str, Any]) -> str:
    """Every base's tables and verdicts."""
    lines = [
        "# Serving many tasks", "",
        f"Batches of rows of many tasks, the task of each row drawn at random, evenly or by Zipf's law. `{OURS}`: "
        "64 numbers a task, from which the hypernetwork makes the adapters of a batch's tasks each time; none is kept. "
        f"`{ONE}`: the same with adapters of one task that were made before. `peft`: LoRA (rank {LORA_RANK}, "
        f"query and value) of every task in memory, mixed by PEFT's `adapter_names`. `{RECENT}`: {SLOTS} of them at a "
        "time, the others written over those that were used longest ago; a batch of more tasks goes in parts. "
        f"`{MERGED}`: LoRA of one task as a part of the weights, the best case of a separate model for each task. "
        "`base`: the T5 without any. All answer one batch after another in turn, so that ratios count: `of merged` and "
        f"`of one task` are medians of ratios of batches, with what nine of ten lie between. {NONE}: the adapters of "
        "so many tasks take more memory than is given to them.",
    ]  # fmt: skip
    for part in document["bases"]:
        lines += [
            "", f"## `{part['base']}`", "",
            f"{made_on(part)}: {part['batch']} rows of {part['tokens']} tokens a batch.", "",
            *_of_base(part["rows"]), "",
            f"![throughput over the number of tasks](serve-{part['base']}.svg)",
        ]  # fmt: skip
    return "\n".join([*lines, ""])


def _of_base(rows: list[dict[str, Any]]) -> Iterable[str]:
    yield from table(VERDICTS, _verdicts(rows))
    yield ""
    yield from table(
        "tasks | drawn | arm | rows/s | p50, ms | p99, ms | of merged | of one task",
        [
            (f"{row['tasks']:,}", kind, arm, *_cells(row[kind].get(arm)))
            for row in rows
            for kind in DRAWS
            for arm in ARMS
        ],
    )
    yield ""
    yield from table(
        "tasks | first answer, ms | later, ms | first / later | bytes a task | bytes of its LoRA",
        [
            (f"{row['tasks']:,}", *(row["service"][name] for name in _SERVICE), f"{row['lora_bytes_a_task']:,}")
            for row in rows
        ],
    )


def _verdicts(rows: list[dict[str, Any]]) -> Iterable[tuple[object, ...]]:
    by_tasks = {row["tasks"]: row for row in rows}
    for tasks in MANY:
        what = f"{tasks:,} tasks, drawn evenly: at least {LEAST_OF_ONE} of the throughput of one task"
        if tasks in by_tasks:
            yield _least(what, by_tasks[tasks]["uniform"][OURS]["of_one_task"][0], LEAST_OF_ONE)
        else:
            yield what, NONE, "not measured yet"
    yield _least(
        f"at no point below {LEAST_ANYWHERE}",
        min(row[kind][OURS]["of_one_task"][0] for row in rows for kind in DRAWS),
        LEAST_ANYWHERE,
    )
    first = rows[0]["uniform"]
    yield _least(f"one task at least {LEAST_OF_MERGED} of merged weights", first[ONE]["of_merged"][0], LEAST_OF_MERGED)
    most = max(row["service"]["bytes_a_task"] for row in rows)
    yield f"memory at most {MOST_BYTES:,} bytes a task", f"{most:,}", met(most <= MOST_BYTES)
    cold = max(row["service"]["cold_to_warm"] for row in rows)
    yield f"a first answer at most {MOST_COLD} of a later one", f"{cold:.2f}", met(cold <= MOST_COLD)


def _least(what: str, found: float, least: float) -> tuple[str, str, str]:
    return what, f"{found:.2f}", met(found >= least)


def _cells(figures: Mapping[str, Any] | None) -> list[object]:
    if figures is None:
        return [NONE] * 5
    times = [figures[name] for name in ("rows_per_second", "p50_milliseconds", "p99_milliseconds")]
    return [*times, *(_told(*figures[name]) for name in ("of_merged", "of_one_task"))]


def _told(middle: float, low: float, high: float) -> str:
    return f"{middle:.2f} ({low:.2f} to {high:.2f})"


def picture(part: Mapping[str, Any]) -> str:
    """Throughput next to one merged model over the number of tasks, of a base's part, as SVG."""
    drawn = {row["tasks"]: row[PICTURED] for row in part["rows"]}
    lines = [
        Line(arm, {tasks: _figure(*arms[arm]["of_merged"]) for tasks, arms in drawn.items() if arm in arms})
        for arm in ARMS
        if arm != MERGED
    ]
    return svg("Throughput beside merged weights of one task, in per cent, over the number of tasks", lines, "tasks")


def _figure(middle: float, low: float, high: float) -> Figure:
    return Figure(100 * middle, 100 * low, 100 * high, below=1.0)
