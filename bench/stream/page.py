"""bench/results/stream.md: the measurements, how, and whether the numbers that were wanted came about."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, Final

from bench.harness.figures import signed
from bench.harness.page import NONE, VERDICTS, listed, met, table, table_row, unmeasured, were
from bench.stream.figures import Results
from bench.stream.methods import FROZEN, GUARDED, LORA, METHODS, NAIVE
from bench.stream.sizes import Size, sizes_table
from bench.stream.tasks import TASKS
from onboard.domain.counting import counted

MOST_LOST: Final = 0.2  # points that earlier tasks may lose on average under the guard
MOST_STORED: Final = 4000  # bytes of a task, without its snapshot


@dataclass(frozen=True)
class Facts:
    """The page's description of its making.

    Args:
        command: that makes it again.
        base: its name.
        shots, test_rows: of a task.
        max_tokens: after which texts are cut.
        missing: steps of the plan that were not made.
        settings: of each method.
        machine: what it was made on.
    """

    command: str
    base: str
    shots: int
    test_rows: int
    max_tokens: int
    missing: int
    settings: Mapping[str, Mapping[str, Any]]
    machine: Mapping[str, Any]


def markdown(results: Results, sizes: Sequence[Size], facts: Facts) -> str:
    """The page."""
    methods = [method for method in METHODS if results.whole(method)]
    parts = [
        _head(results, facts), _wanted(results, sizes), _methods(results, methods), _picture(),
        _tasks(results, methods), _let_through(results),
        ["## Bytes per task", "",
         "Stored bytes besides the snapshot of the rows; the shared part is divided among 1, 10, 100 and 1,000 tasks. "
         "Own is the file of an embedding with all its facts, and its row in the registry. A hypernetwork that a task "
         "was learned under is kept for as long as the task is: the guard compares with it. Not counted: the rows "
         "themselves, the job with its report, and what a database adds for its indexes.", "", *sizes_table(sizes), ""],
        _how(facts),
    ]  # fmt: skip
    return "\n".join(line for part in parts for line in part)


def _head(results: Results, facts: Facts) -> list[str]:
    machine, orders = facts.machine, len(results.tasks)
    left = [f"**{were(facts.missing, 'step')} not made; methods that are not at their end are left out.**", ""]
    return [
        "# One task after another", "",
        f"Made by `{facts.command}` on `{facts.base}` ({machine['processor']}, {machine['cores']} cores); one row a "
        "step stands in [stream.jsonl](stream.jsonl).",
        f"{len(results.names)} tasks in a row, {facts.shots} labelled rows each, in {counted(orders, 'order')} with "
        f"separate draws; accuracy in per cent on at most {facts.test_rows} test rows. Texts are cut after "
        f"{facts.max_tokens} tokens. Intervals are 95%, over orders and test rows; two methods are compared on the "
        "same rows.", "",
        *(left if facts.missing else []),
    ]  # fmt: skip


def _wanted(results: Results, sizes: Sequence[Size]) -> list[str]:
    text = ["## Targets", "", *table(VERDICTS)]
    what = "frozen: BWT is 0, byte for byte of the generated weights"
    if results.whole(FROZEN):
        same = sum(results.rows(FROZEN, order)[-1]["unchanged"] for order in range(len(results.tasks)))
        earlier = len(results.tasks) * (len(results.names) - 1)
        exact = same == earlier and results.backward(FROZEN).value == 0
        text.append(table_row(what, f"{same} of {earlier} earlier tasks are generated the same", met(exact)))
    else:
        text.append(unmeasured(what))
    text += _of_the_guard(results)
    what = "naive tuning forgets on the same stream"
    if results.whole(NAIVE):
        lost = results.backward(NAIVE)
        text.append(table_row(what, f"BWT {signed(lost)}", met(lost.high < 0)))
    else:
        text.append(unmeasured(what))
    if sizes:
        own = sizes[0].own
        text.append(table_row("stored per task, without snapshot: under 4 KB", f"{own:,.0f} B", met(own < MOST_STORED)))
    return [*text, ""]


def _of_the_guard(results: Results) -> list[str]:
    most = f"guarded: mean drop at most {MOST_LOST:g} point"
    worse = "guarded: no task significantly worse"
    above = "guarded: average accuracy at or above frozen"
    if not results.whole(GUARDED):
        return [unmeasured(what) for what in (most, worse, above)]
    lost = results.backward(GUARDED)
    drops = results.drops(GUARDED)
    losers = [name for name, drop in drops.items() if drop.worse]
    moved = [drop.detectable(len(drops)) for drop in drops.values() if drop.change.high > drop.change.low]
    seen = "no answer changed"
    if moved:
        seen = (
            f"where answers changed ({counted(len(moved), 'task')}) a drop of {median(moved):.1f} points would have "
            "shown in four of five cases"
        )
    text = [
        table_row(most, f"BWT {signed(lost)}", met(lost.value >= -MOST_LOST)),
        table_row(worse, f"{', '.join(losers) or 'none'}; {seen}", met(not losers)),
    ]  # fmt: skip
    if not results.whole(FROZEN):
        return [*text, unmeasured(above)]
    gain = results.gain(GUARDED, FROZEN)
    return [*text, table_row(above, signed(gain), met(gain.value >= 0))]


def _methods(results: Results, methods: Sequence[str]) -> list[str]:
    text = [
        "## Methods", "",
        "Average accuracy after the last task, and on each task right after it was learned. BWT: change of "
        "the earlier tasks up to the end. FWT: accuracy of the start that the probe chose, before training, above that "
        "of a random embedding. Forgetting: how far a task is below its best. p: that the worst task did not lose, "
        "after Holm over the tasks. Under every method that tunes the hypernetwork all earlier tasks are measured "
        "under the last one, so that pins hide nothing.", "",
        *table("method | average accuracy | beside frozen | right after learning | BWT | "
"FWT | forgetting | worst task | p | core seconds per task"),
    ]  # fmt: skip
    for method in methods:
        gain = results.gain(method, FROZEN) if method != FROZEN and FROZEN in methods else None
        name, drop = min(results.drops(method).items(), key=lambda named_drop: named_drop[1].change.value)
        worst = NONE if method in (FROZEN, LORA) else f"{name} {signed(drop.change)}"
        p_value = NONE if method in (FROZEN, LORA) else f"{drop.p_value:.3f}"
        seconds = results.seconds(method)
        took = f"{sum(seconds.values()):.0f} ({', '.join(f'{part} {spent:.0f}' for part, spent in seconds.items())})"
        text.append(table_row(METHODS[method].title, results.accuracy(method).shown, signed(gain),
                         results.learned(method).shown, signed(results.backward(method)),
                         signed(results.forward(method)), signed(results.forgetting(method)), worst, p_value,
                         took))  # fmt: skip
    return [*text, ""]


def _picture() -> list[str]:
    return ["## R", "", "Accuracy on each task (columns) after each task (rows) of the first order; the colour is what "
            "changed since the task was learned.", "",
            "![Accuracy on each task after each task, by method](stream-1.svg)", ""]  # fmt: skip


def _tasks(results: Results, methods: Sequence[str]) -> list[str]:
    """Each task's accuracy at the end, and its change."""
    text = [
        "## Tasks", "",
        "Accuracy at the end, over the orders; in brackets the change since the task was learned. Bold: significantly "
        "worse.", "",
        *table(("task", "what it is", *(METHODS[method].title for method in methods))),
    ]  # fmt: skip
    ends = {method: results.at_the_end(method) for method in methods}
    drops = {method: results.drops(method) for method in methods}
    for name in results.names:
        cells = []
        for method in methods:
            drop = None if method in (FROZEN, LORA) else drops[method].get(name)
            change = f"{drop.change.value:+.1f}" if drop else ""
            told_change = f" (**{change}**)" if drop and drop.worse else f" ({change})" if drop else ""
            cells.append(f"{ends[method][name].value:.1f}{told_change}")
        text.append(table_row(name, TASKS[name], *cells))
    return [*text, ""]


def _let_through(results: Results) -> list[str]:
    """How many tasks were tuned under the guard, and what became of the steps."""
    rows = [(order, row) for order in range(len(results.tasks)) for row in results.rows(GUARDED, order)]
    if not rows:
        return []
    counted = Counter(row["share"] * row.get("proposed", 1.0) for _, row in rows)
    shares = [f"{f'{share:g} of the step' if share else 'nothing'} by {counted[share]}"
              for share in sorted(counted, reverse=True)]  # fmt: skip
    text = ["## Tunings that the guard accepted", "", f"Of {len(rows)} tasks taken was {', '.join(shares)}."]
    short = [(order, row) for order, row in rows if row["share"] * row.get("proposed", 1.0) < 1]
    if short:
        text += [
            "", "Of the step the new task wanted a share (by cross-validated rows), and of that "
            "the guard let a share through. Those that did not get the whole of it:", "",
            *table("order | after | wanted | let through | tasks that did not pass"),
            *(_objection(order, row) for order, row in short),
        ]  # fmt: skip
    return [*text, ""]


def _objection(order: int, row: Mapping[str, Any]) -> str:
    by_verdict = row.get("guard", {}).get("tasks", {})
    objected = [f"{name} ({verdict})" for verdict, names in by_verdict.items() if verdict != "pass" for name in names]
    reason = row.get("trouble") or ", ".join(objected) or NONE
    return table_row(order + 1, row["task"], f"{row.get('proposed', 1.0):g}", f"{row['share']:g}", reason)


def _how(facts: Facts) -> list[str]:
    text = [
        "## How it was made", "",
        "Every task is learned as the service learns it: the probe chooses a start among the shipped embeddings and "
        "those of the stream so far, then the embedding is trained on all rows. Frozen stops there. The others then "
        "tune hypernetwork and embedding together; what they hold in place, and what the guard looks at, are the "
        "shipped sources and the stream's earlier tasks, each beside the hypernetwork that it was learned under. How "
        "much of a step a task wants is seen on its labelled rows, predicted without themselves, as in a job. With "
        f"{facts.shots} rows a task has none held out, so the guard judges by its texts and by canaries. LoRA (rank "
        "8, q and v) is one more model per task: nothing is shared but the backbone, so nothing is forgotten and "
        "nothing carries over.",
        "No base has learned the tasks: they are held out, one of a family each. The embedding answers alone, "
        "without the readout of a published version, which no tuning changes: a version loses less than what "
        "stands here. By default a job tunes only where that seems to pay, so fewer tasks than here.", "",
    ]  # fmt: skip
    for method, settings in facts.settings.items():
        parts = [f"{part}: {listed(of)}" for part, of in settings.items() if isinstance(of, Mapping)]
        text.append(f"- {METHODS[method].title}: {'; '.join(parts)}.")
    return [*text, ""]
