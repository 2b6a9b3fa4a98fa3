"""docs/results/transfer.md: what was measured, how, and whether the numbers that were wanted came about."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from bench.transfer.cells import (
    AUTO,
    EMBEDDING_ONLY,
    MORE_SAMPLES,
    MORE_SAMPLES_TASKS,
    RANDOM,
    SHOTS,
    SOURCES,
    TITLES,
    UNGATED,
    WITH_EVERY_SOURCE,
    Run,
)
from bench.transfer.figures import Figure, Key, Results, figure
from bench.transfer.plot import Line
from bench.transfer.recipes import EPOCHS, Recipe

MOST_REGRET: Final = 1.0  # points
NEAR_LORA: Final = 2.0  # points that embedding-only may stay below LoRA
METHODS: Final[Mapping[Key, str]] = {
    ("embedding", AUTO): "embedding only, auto",
    ("embedding", "hand"): "embedding only, hand-picked",
    ("embedding", RANDOM): "embedding only, random",
    ("hypernetwork", AUTO): "hypernetwork + embedding, auto",
    ("hypernetwork", "hand"): "hypernetwork + embedding, hand-picked",
    ("hypernetwork", RANDOM): "hypernetwork + embedding, random",
    ("full", ""): "full fine-tuning",
    ("adapters", ""): "Adapters†",
    ("lora", ""): "LoRA, r = 8",
    ("prompt", ""): "prompt tuning",
    ("tfidf", ""): "TF-IDF + logistic regression",
}
OURS: Final = (("embedding", AUTO), ("hypernetwork", AUTO))
OTHERS: Final = (("full", ""), ("adapters", ""), ("lora", ""), ("prompt", ""), ("tfidf", ""))
PLOTTED: Final = (*OURS, *OTHERS)
ASCENDING: Final = tuple(sorted(SHOTS))
NONE: Final = "–"


@dataclass(frozen=True)
class Facts:
    """What the page says of how it was made.

    Args:
        command: that makes it again.
        base: name and digest.
        test_rows: most of a task.
        recipes: by method.
        embedding: the service's own recipe as it was used.
        missing: runs of the plan that were not made.
        machine: what it was made on.
    """

    command: str
    base: str
    test_rows: int
    recipes: Mapping[str, Recipe]
    embedding: Mapping[str, Any]
    missing: int
    machine: Mapping[str, Any]


def markdown(results: Results, facts: Facts) -> str:
    """The page."""
    tasks = list(results.hands)
    parts = [
        _head(results, facts),
        _wanted(results, tasks),
        ["![Mean accuracy over the number of labelled rows](transfer.svg)", ""],
        *(_accuracies(results, tasks, shots) for shots in (*EMBEDDING_ONLY, *ASCENDING)),
        _beside_others(results, tasks),
        _beside_hand(results),
        _regrets(results),
        _every_source(results, tasks),
        _more_samples(results),
        _recipes(facts),
    ]
    return "\n".join(line for part in parts for line in part)


def lines(results: Results) -> list[Line]:
    """What is plotted: means over the tasks by n."""
    tasks = list(results.hands)
    return [
        Line(METHODS[key], {n: found for n in (*EMBEDDING_ONLY, *ASCENDING) if (found := results.mean(tasks, n, key))})
        for key in PLOTTED
    ]


def _head(results: Results, facts: Facts) -> list[str]:
    machine = facts.machine
    left = [f"**{facts.missing} runs of the plan were not made; what depends on them is left out.**", ""]
    return [
        "# A new task with few rows: here, and elsewhere", "",
        f"Made by `{facts.command}` on {facts.base} ({machine['processor']}, {machine['cores']} cores); one row a run "
        "stands in [transfer.jsonl](../../bench/results/transfer.jsonl).",
        f"Accuracy in per cent on at most {facts.test_rows} test rows; {len(results.seeds)} draws of n labelled "
        "rows in all, the same rows for all methods. Intervals are 95%, by a bootstrap over draws and test rows, "
        "paired where two methods are compared. All n rows are trained on; the service would hold a quarter out from "
        "65 rows on.", "",
        *(left if facts.missing else []),
    ]  # fmt: skip


def _wanted(results: Results, tasks: Sequence[str]) -> list[str]:
    """The numbers that were wanted, beside what was found."""
    told = [
        "## What was wanted", "",
        "| what | found | verdict |", "|---|---|---|",
        *_regret_verdict(results),
        *_hand_verdict(results),
    ]  # fmt: skip
    for other, most in (("full", 0.0), ("lora", 0.0), ("prompt", 0.0)):
        told += _gain_verdict(results, tasks, 32, ("embedding", AUTO), (other, ""), most, "goal")
    told += _gain_verdict(results, tasks, 32, ("embedding", AUTO), ("prompt", ""), 0.0, "floor")
    told += _gain_verdict(results, tasks, 32, ("embedding", AUTO), ("lora", ""), -NEAR_LORA, "floor")
    for shots in ASCENDING:
        for other in ("adapters", "lora"):
            told += _gain_verdict(results, tasks, shots, ("hypernetwork", AUTO), (other, ""), 0.0, "goal")
    return [*told, ""]


def _regret_verdict(results: Results) -> list[str]:
    found = results.regrets("embedding", WITH_EVERY_SOURCE)
    what = f"regret of auto, embedding only, at most {MOST_REGRET:g} point"
    if not found:
        return [_row(what, NONE, "not measured")]
    mean = figure(list(found.values()))
    return [_row(what, f"{mean.shown} over {mean.cells} cells", _met(mean.value <= MOST_REGRET))]


def _hand_verdict(results: Results) -> list[str]:
    told = []
    for method, _ in OURS:
        found = results.beside_hand(method, ASCENDING)
        what = f"auto is not significantly below the hand-picked source, {_title(method)}"
        below = [f"{TITLES[each.task]} at {each.shots}" for each in found if each.below]
        cells = sum(each.p_value is not None for each in found)
        told.append(_row(what, f"below in {len(below)} of {cells} cells", _met(not below)) if cells else
                    _row(what, NONE, "not measured"))  # fmt: skip
    return told


def _gain_verdict(
    results: Results, tasks: Sequence[str], shots: int, key: Key, other: Key, most: float, kind: str
) -> list[str]:
    beyond = "above" if most == 0 else f"at most {-most:g} points below"
    what = f"{kind}: {_title(key[0])} {beyond} {METHODS[other]}, n = {shots}"
    gain = results.gain(tasks, shots, key, other)
    if gain is None:
        return [_row(what, NONE, "not measured")]
    return [_row(what, _signed(gain), _met(gain.value > most if most == 0 else gain.value >= most))]


def _accuracies(results: Results, tasks: Sequence[str], shots: int) -> list[str]:
    told = [
        f"## n = {shots}", "",
        _row("method", *(TITLES[task] for task in tasks), "mean", "rows trained on", "seconds"),
        "|---" * (len(tasks) + 4) + "|",
    ]  # fmt: skip
    found = []
    for key, title in METHODS.items():
        cells = [results.mean([task], shots, key) for task in tasks]
        if not any(cells):
            continue
        mean = results.mean(tasks, shots, key)
        found.append(_row(title, *map(_value, cells), mean.shown if mean else NONE, *_cost(results, shots, key)))
    return [*told, *found, ""] if found else []


def _cost(results: Results, shots: int, key: Key) -> tuple[str, str]:
    """Rows that a run trained on, and its seconds, on average."""
    rows = [
        row
        for run, row in results.rows.items()
        if (run.shots, run.method) == (shots, key[0])
        and run.start == (results.hands[run.task] if key[1] == "hand" else key[1])
    ]
    passes, seconds = (statistics.fmean(row[name] for row in rows) for name in ("row_passes", "seconds"))
    return f"{passes:,.0f}", f"{seconds:.1f}"


def _beside_others(results: Results, tasks: Sequence[str]) -> list[str]:
    told = [
        "## Beside the others", "",
        "Points that ours, from auto, is above the other on the mean over the tasks; a deficit is negative.", "",
        _row("ours", "n", *(METHODS[other] for other in OTHERS)), "|---" * (len(OTHERS) + 2) + "|",
    ]  # fmt: skip
    for key in OURS:
        for shots in ASCENDING:
            gains = [results.gain(tasks, shots, key, other) for other in OTHERS]
            told.append(_row(_title(key[0]), shots, *map(_signed, gains)))
    return [*told, ""]


def _beside_hand(results: Results) -> list[str]:
    told = [
        "## Auto beside the source that the paper picked by hand", "",
        f"p: that auto is not below, one-sided, after Holm over the cells of a method; {_ungated()} is shown and not "
        "judged.", "",
        "| method | task | n | hand-picked | auto took | gain | p |", "|---|---|---|---|---|---|---|",
    ]  # fmt: skip
    for method, _ in OURS:
        for each in results.beside_hand(method, ASCENDING):
            p_value = NONE if each.p_value is None else f"{each.p_value:.3f}{' (below)' if each.below else ''}"
            took = _taken(results, each.task, each.shots, method)
            told.append(_row(_title(method), TITLES[each.task], each.shots, results.hands[each.task], took,
                             _signed(each.gain), p_value))  # fmt: skip
    return [*told, ""]


def _taken(results: Results, task: str, shots: int, method: str) -> str:
    runs = [Run(task, shots, seed, method, AUTO) for seed in results.seeds]
    return ", ".join(results.rows[run]["chosen"] for run in runs)


def _regrets(results: Results) -> list[str]:
    told = [
        "## Regret of auto", "",
        "Points below the oracle: the start (random or a source) that is best on the other draws, scored on this one. "
        "Below zero auto found something better, as it has more to choose among.", "",
        "| method | task | n | regret |", "|---|---|---|---|",
    ]  # fmt: skip
    for method, _ in OURS:
        found = results.regrets(method, WITH_EVERY_SOURCE)
        told += [_row(_title(method), TITLES[t], n, figure([matrix]).shown) for (t, n), matrix in found.items()]
        if found:
            told.append(_row(f"**{_title(method)}**", "**mean**", "", f"**{figure(list(found.values())).shown}**"))
    return [*told, ""]


def _every_source(results: Results, tasks: Sequence[str]) -> list[str]:
    told = ["## Every start, embedding only", ""]
    starts = (AUTO, RANDOM, *SOURCES)
    told += [_row("n", "start", *(TITLES[task] for task in tasks)), "|---" * (len(tasks) + 2) + "|"]
    for shots in WITH_EVERY_SOURCE:
        for start in starts:
            cells = [results.mean([task], shots, ("embedding", start)) for task in tasks]
            if any(cells):
                told.append(_row(shots, start, *map(_value, cells)))
    return [*told, ""]


def _more_samples(results: Results) -> list[str]:
    tasks = [task for task in MORE_SAMPLES_TASKS if task in results.hands]
    told = [
        "## With more rows", "",
        "Footnote 4 of the paper: embedding-only tuning is lower with few samples and comparable with more. "
        "Gain: embedding only less hypernetwork + embedding, both from auto.", "",
        "| n | task | embedding only | hypernetwork + embedding | gain | full fine-tuning | TF-IDF |",
        "|---|---|---|---|---|---|---|",
    ]  # fmt: skip
    for shots in MORE_SAMPLES:
        for task in tasks:
            cells = [results.mean([task], shots, key) for key in (*OURS, ("full", ""), ("tfidf", ""))]
            if any(cells):
                gain = results.gain([task], shots, *OURS)
                told.append(_row(shots, TITLES[task], *map(_shown, cells[:2]), _signed(gain), *map(_shown, cells[2:])))
    return [*told, ""]


def _recipes(facts: Facts) -> list[str]:
    told = [
        "## How each was trained", "",
        "All read the same tokens, train the loss that is scored (the distribution over the task's labels) and start "
        "from the base's backbone, which has learned the source tasks. Hyper-parameters were chosen on the source "
        "tasks (`python -m bench.transfer --suite source --grid`), within at most 120 steps of 16 rows for each; with "
        f"more rows they have {EPOCHS} epochs at least. Row counts and seconds of each stand in the tables: the "
        "probe's rows are not among those trained on, its seconds are in those of embedding only.", "",
        "| method | learning rate | steps | rows a step | of z |", "|---|---|---|---|---|",
    ]  # fmt: skip
    for method, recipe in facts.recipes.items():
        of_z = f"{recipe.z_learning_rate:g}" if recipe.z_learning_rate else ""
        told.append(_row(_title(method), f"{recipe.learning_rate:g}", recipe.steps, recipe.batch, of_z))
    embedding = ", ".join(f"{name} {value}" for name, value in facts.embedding.items())
    return [
        *told, "",
        f"Embedding only is the service's own training: {embedding}. More than 100 rows get steps enough to see each "
        "about once, 400 at most.",
        "Hypernetwork and embedding are tuned without a guard, and the T5 norms stay as they are. Adapters† are new "
        "ones for the task, with the T5 norms beside them; γ starts at 0, since from 1, as the authors have it, a "
        "small backbone forgets what it knows ([ablations.md](ablations.md)). LoRA and prompt tuning are "
        "PEFT's: q and v, α = 16; 20 vectors that start as tokens.", "",
    ]  # fmt: skip


def _title(method: str) -> str:
    own = {"embedding": "embedding only", "hypernetwork": "hypernetwork + embedding"}
    return own[method] if method in own else METHODS[method, ""]


def _ungated() -> str:
    return ", ".join(TITLES[task] for task in UNGATED)


def _row(*cells: object) -> str:
    return f"| {' | '.join(map(str, cells))} |"


def _met(met: bool) -> str:
    return "met" if met else "**not met**"


def _value(found: Figure | None) -> str:
    return f"{found.value:.1f}" if found else NONE


def _shown(found: Figure | None) -> str:
    return found.shown if found else NONE


def _signed(found: Figure | None) -> str:
    return f"{found.value:+.1f} ({found.low:+.1f} to {found.high:+.1f})" if found else NONE
