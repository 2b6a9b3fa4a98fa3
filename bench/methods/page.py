"""bench/results/methods.md: the measurements of the methods, how, and whether the targets were reached."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from bench.harness.page import NONE, VERDICTS, met, table, table_row, unmeasured, were
from bench.harness.rows import Row
from bench.heldout.figures import plain, signed
from bench.heldout.plan import ArmRun
from bench.methods.choosing import chosen
from bench.methods.efficiency import COUNTERPARTS
from bench.methods.figures import AUTO, SPREAD, Scores, regret
from bench.methods.plan import ARMS, DEFAULT, LINEAR, TARGETS, TFIDF, WIDE
from onboard.contract.methods import MethodResult
from onboard.domain.counting import counted
from onboard.report.methods import MethodsCompared
from onboard.train.method_choice import WITHIN

MOST_TO_PEFT: Final = 1.1
LEAST_MIXED: Final = 0.8
MOST_BELOW: Final = 2.0  # points that auto may be below TF-IDF, or the readout alone, on a task
MOST_REGRET: Final = 1.0
PLOTTED_AT: Final = 100  # tasks that share the hypernetwork in the picture
ERRORS: Final = (0.0, 0.25, 0.5, 1.0, 2.0)  # standard errors that were tried for the rule
SHAPES: Final = {  # of a training step, and what one has in it
    "efficiency": ("T5-small shape, CPU", "16 rows of 64 tokens, float32"),
    "efficiency_gpu": ("T5-base shape, GPU", "32 rows of 128 tokens, bfloat16"),
}
TITLES: Final = {
    AUTO: "**`--method auto`**", DEFAULT: "default, not tuned", LINEAR: "readout alone",
    TFIDF: "TF-IDF + logistic regression",
}  # fmt: skip


@dataclass(frozen=True)
class Facts:
    """The data of the page.

    Args:
        command: that measures the targets; the others differ by their options.
        target, wide, source: rows by run.
        missing: runs of the targets' plan that were not made.
        shared: bytes of the hypernetwork.
        costs: what `--efficiency` and `--throughput` measured; empty where they were not.
    """

    command: str
    target: Mapping[ArmRun, Row]
    wide: Mapping[ArmRun, Row]
    source: Mapping[ArmRun, Row]
    missing: Sequence[ArmRun]
    shared: int
    costs: Mapping[str, Any]


def markdown(facts: Facts) -> str:
    """The page."""
    parts = [_head(facts), _verdicts(facts)]
    for count in sorted({run.rows for run in facts.target}):
        scores = Scores.of(facts.target, count)
        parts += [_quality(scores), _bytes(scores, facts.shared)]
    steps = [_efficiency(facts.costs.get(name), *shape) for name, shape in SHAPES.items()]
    parts += [_curves(facts.source), _rule(facts.wide), *steps, _throughput(facts.costs.get("throughput"))]
    return "\n".join(line for part in parts for line in part)


def picture(facts: Facts) -> str:
    """Score against bytes a task, of the fewest labelled rows, as SVG."""
    scores = Scores.of(facts.target, min((run.rows for run in facts.target), default=0))
    tasks, results = scores.common(scores.arms), []
    for arm in scores.arms:
        mean, stored = scores.mean(arm, tasks), scores.stored(arm, facts.shared, PLOTTED_AT)
        if mean and stored and arm != AUTO:
            score = {"value": mean.value / 100, "low": mean.value / 100, "high": mean.value / 100}
            results.append(MethodResult(method=arm, state="succeeded", score=score, stored_bytes=round(stored)))
    return MethodsCompared(task="", metric="accuracy", split="test", results=tuple(results)).plot()


def _head(facts: Facts) -> list[str]:
    draws = len({run.draw for run in facts.target})
    left = f" **{were(len(facts.missing), 'run')} not made.**" if facts.missing else ""
    return [
        "# Comparison of methods", "",
        f"Quality on the targets by `{facts.command}`, the rule on held-out tasks by the same with `--suite wide`; one "
        "row a training stands in [methods.jsonl](methods.jsonl). Step times by `python -m "
        "bench.methods --efficiency`, mixed batches by `--throughput`: "
        f"[methods.json](methods.json).{left}", "",
        f"Base `mini`, {counted(draws, 'draw')} of balanced rows, at most 300 test rows, one thread. The default is "
        "the embedding with its readout; its hypernetwork was **not tuned** in these runs. Task-specific weights "
        "come with their readout. The result of `auto` is computed from the same trainings, by the rule "
        "itself: it trains what was trained here.", "",
    ]  # fmt: skip


def _verdicts(facts: Facts) -> list[str]:
    lines = ["## Targets", "", *table(VERDICTS)]
    peft = (facts.costs.get("efficiency") or {}).get("rows", {})
    slowest = [row["to_peft"] for row in peft.values() if row["to_peft"] is not None]
    what = f"a step at most {MOST_TO_PEFT} of PEFT's counterpart ({', '.join(COUNTERPARTS)}), T5-small shape, CPU"
    lines.append(
        table_row(what, f"{max(slowest):.2f}", met(max(slowest) <= MOST_TO_PEFT)) if slowest else unmeasured(what)
    )
    what = f"64 rows of 64 tasks in 4 methods: at least {LEAST_MIXED} of the throughput of one method"
    mixed = (facts.costs.get("throughput") or {}).get("mixed_throughput")
    lines.append(unmeasured(what) if mixed is None else table_row(what, f"{mixed:.2f}", met(mixed >= LEAST_MIXED)))
    scores = Scores.of(facts.target, 32)
    return [*lines, _best_single(scores), _below(scores), _regret(Scores.of(facts.wide, 32)), ""]


def _best_single(scores: Scores) -> str:
    what = "`auto` at least the best single method of the family on the mean of the targets, n = 32"
    gains = {arm: gain for arm in scores.arms if arm not in (AUTO, TFIDF) and (gain := scores.gain(arm))}
    if not gains:
        return unmeasured(what)
    best = min(gains, key=lambda arm: gains[arm].value)
    shown, tasks = f"{signed(gains[best])} above {best}", gains[best].tasks
    if tasks < len(TARGETS):
        return unmeasured(what, f"{shown} on {tasks} of {len(TARGETS)}")
    return table_row(what, shown, met(gains[best].value >= 0))


def _below(scores: Scores) -> str:
    what = f"`auto` on no target more than {MOST_BELOW:g} points below TF-IDF or the readout alone, n = 32"
    gains = [(gain, task) for arm in (TFIDF, LINEAR) for task, gain in scores.gains(arm).items()]
    tasks = scores.common([AUTO, TFIDF, LINEAR])
    if not gains or not tasks:
        return unmeasured(what)
    worst, task = min(gains)
    shown = f"{worst:+.1f} at worst, {task}"
    if len(tasks) < len(TARGETS):
        return unmeasured(what, f"{shown}, on {len(tasks)} of {len(TARGETS)}")
    return table_row(what, shown, met(worst >= -MOST_BELOW))


def _regret(scores: Scores) -> str:
    what = f"`auto` on held-out tasks at most {MOST_REGRET:g} point below the single method that is best on the mean"
    lost = regret(scores.rows, WITHIN)
    if lost is None:
        return unmeasured(what)
    if lost[2] < len(WIDE):
        return unmeasured(what, f"{lost[1]:+.1f} on {lost[2]} of {len(WIDE)}")
    return table_row(what, f"{lost[1]:+.1f}", met(lost[1] <= MOST_REGRET))


def _quality(scores: Scores) -> list[str]:
    common, several = scores.common(scores.arms), max(map(scores.draws, scores.arms), default=1) > 1
    head = ["method", *scores.tasks, f"mean of {len(common)}", *(["draws"] if several else [])]
    lines = [
        table_row(
            TITLES.get(arm, arm), *(_of_task(scores, arm, task) for task in scores.tasks),
            plain(scores.mean(arm, common)), *([str(scores.draws(arm))] if several else []),
        )
        for arm in scores.arms
    ]  # fmt: skip
    note = f"The mean is over the {counted(len(common), 'task')} that every method of the table was measured on."
    note += " Verdicts compare on the draws that both methods have." if several else ""
    return [f"## Accuracy, n = {scores.count}", "", *table(head), *lines, "", note, ""]


def _of_task(scores: Scores, arm: str, task: str) -> str:
    value = scores.of_task(arm, task)
    return NONE if value is None else f"{value:.1f}"


def _bytes(scores: Scores, shared: int) -> list[str]:
    common = scores.common(scores.arms)
    rows = []
    for arm in scores.arms:
        stored = [scores.stored(arm, shared, tasks) for tasks in SPREAD]
        if None not in stored and arm != AUTO:
            rows.append([TITLES.get(arm, arm), plain(scores.mean(arm, common)), *(f"{size:,.0f}" for size in stored)])
    head = ["method", "accuracy", *(f"{counted(tasks, 'task')}" for tasks in SPREAD)]
    return [
        f"## Bytes a task, n = {scores.count}", "",
        f"The bytes of a task, and its share of the hypernetwork of {shared:,} bytes. The backbone is "
        f"the same for all. The picture has {PLOTTED_AT} tasks.", "",
        *table(head, rows), "", "![score against bytes a task](methods.svg)", "",
    ]  # fmt: skip


def _curves(source: Mapping[ArmRun, Row]) -> list[str]:
    """Accuracy against labelled rows, a table for each task."""
    scores = [Scores.of(source, count) for count in sorted({run.rows for run in source})]
    lines = [
        "## Low-resource curves", "",
        "Tasks of GLUE with few to many of their own rows (`--suite source`), accuracy. The base has learned them from "
        "all their rows, as the T5 of the papers' figures had: so the curves tell what a method makes of a task that "
        "its backbone knows. HyperFormer++'s Figure 2 and Compacter's Figure 4 have means over all of GLUE.", "",
    ]  # fmt: skip
    for task in dict.fromkeys(task for of_count in scores for task in of_count.tasks):
        own = [of_count for of_count in scores if task in of_count.tasks]
        arms = [arm for arm in TITLES | dict.fromkeys(ARMS) if any(arm in of_count.arms for of_count in own)]
        rows = [[TITLES.get(arm, arm), *(_of_task(of_count, arm, task) for of_count in own)] for arm in arms]
        lines += [*table([task, *(f"{of_count.count:,} rows" for of_count in own)], rows), ""]
    return lines if source else []


def _rule(wide: Mapping[ArmRun, Row]) -> list[str]:
    if not wide:
        return []
    scores, rows = Scores.of(wide, 32), []
    for errors in ERRORS:
        lost = regret(scores.rows, errors)
        if lost:
            taken = [one.arm for one in chosen(scores.rows, errors).values()]
            counts = ", ".join(f"{arm} {taken.count(arm)}" for arm in dict.fromkeys(sorted(taken)))
            rows.append([f"{errors:g}", f"{lost[0]:.1f}", f"{lost[1]:+.1f}", counts])
    gains = [
        table_row(TITLES.get(arm, arm), signed(scores.gain(arm)), plain(scores.mean(arm, scores.common([AUTO, arm]))))
        for arm in scores.arms
        if arm != AUTO and AUTO in scores.arms
    ]
    return [
        "## The rule, on held-out tasks, n = 32", "",
        "How many standard errors of the paired difference fewer bytes may cost: points lost against the best method "
        "of each cell, against the single method that is best on the mean, and what was taken.", "",
        *table("standard errors | lost to the best of each | to the best single one | taken", rows), "",
        *_quality(scores)[2:], *(table("method | `auto` less it | accuracy") if gains else []), *gains, "",
    ]  # fmt: skip


def _efficiency(costs: Mapping[str, Any] | None, shape: str, batch: str) -> list[str]:
    if not costs:
        return [f"## A training step, {shape}", "", "Not measured.", ""]
    rows = [
        [
            name, f"{row['milliseconds']:,.0f}", f"{row['to_full']:.2f}", f"{row['memory'] / 2**20:,.0f}",
            f"{row['memory_to_full']:.2f}", *(NONE if row[key] is None else f"{row[key]:,}" for key in
            ("trained", "stored_bytes")), NONE if row["to_peft"] is None else f"{row['to_peft']:.2f}",
        ]
        for name, row in costs["rows"].items()
    ]  # fmt: skip
    head = "method | step, ms | to full | memory, MiB | to full | trained | bytes a task | to PEFT's"
    return [
        f"## A training step, {shape}", "",
        f"`{costs['command']}` on {costs['machine'].get('gpu', costs['machine']['processor'])}, one thread, medians of "
        f"{costs['rounds']} steps taken in turn: ratios count, not milliseconds. {batch}. `embedding` trains 64 "
        "numbers; `hyperformer++` also the hypernetwork, and stores 64 numbers "
        "a task. Full fine-tuning would store all.", "",
        *table(head, rows), "",
    ]  # fmt: skip


def _throughput(costs: Mapping[str, Any] | None) -> list[str]:
    if not costs:
        return []
    times = ", ".join(f"{name} {milliseconds:,.0f}" for name, milliseconds in costs["milliseconds"].items())
    return [
        "## Tasks mixed in a batch", "",
        f"{costs['tasks']} rows of {costs['tokens']} tokens of {costs['tasks']} tasks on `mini`; milliseconds: "
        f"{times}. The mixed batch has {costs['mixed_throughput']:.2f} of the mean throughput of the four "
        "methods alone.", "",
    ]  # fmt: skip
