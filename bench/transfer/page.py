"""bench/results/transfer.md: the measurements, how, and whether the numbers that were wanted came about."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Final

from bench.harness.figures import Cells, figure_of_tasks, figures, plain, signed, with_interval
from bench.harness.lines import Line
from bench.harness.page import NONE, joined, listed, table, table_row, were
from bench.transfer.cells import (
    AUTO,
    EMBEDDING_ONLY,
    MORE_SAMPLES,
    RANDOM,
    SOURCES,
    TITLES,
    UNGATED,
    WITH_EVERY_SOURCE,
    TrainingRun,
)
from bench.transfer.figures import (
    ASCENDING,
    BY_RULE,
    METHODS,
    OTHERS,
    OURS,
    RULED,
    STARTS,
    Key,
    Results,
    title,
    ungated,
)
from bench.transfer.recipes import CHOSEN_AT, CHOSEN_BY, CHOSEN_WITHOUT, CREDITED, EPOCHS, Recipe, RecipeKey
from bench.transfer.runs import FLOAT32
from bench.transfer.verdicts import NEAR, of_more, wanted_lines
from onboard.domain.counting import counted

PLOTTED: Final = (*OURS, *OTHERS)
TABLED: Final = (*(Key(method, start) for method, _, _ in OURS for start in STARTS), RULED, *OTHERS)
MOST_HOURS: Final = 16  # of one core: eight of two


@dataclass(frozen=True)
class Facts:
    """The page's description of its making.

    Args:
        command: that makes it again.
        base: name and digest.
        test_rows: most of a task.
        recipes: by method and name.
        embedding, tuning: the service's own recipes as they were used.
        missing: runs of the plan that were not made.
    """

    command: str
    base: str
    test_rows: int
    recipes: Mapping[RecipeKey, Recipe]
    embedding: Mapping[str, Any]
    tuning: Mapping[str, Any]
    missing: Sequence[TrainingRun]


def markdown(results: Results, facts: Facts) -> str:
    """The page."""
    tasks = list(results.hands)
    parts = [
        _head(results, facts),
        wanted_lines(results, tasks),
        ["![Mean accuracy over the number of labelled rows](transfer.svg)", ""],
        *(_accuracies(results, tasks, shots) for shots in (*EMBEDDING_ONLY, *ASCENDING)),
        _beside_others(results, tasks),
        _beside_hand(results),
        _regrets(results),
        _every_source(results, tasks),
        _more_samples(results),
        _recipes(results, facts),
    ]
    return "\n".join(line for part in parts for line in part)


def lines(results: Results) -> list[Line]:
    """The plotted points: means over the tasks by n."""
    tasks = list(results.hands)
    return [
        Line(title(key), {n: mean for n in (*EMBEDDING_ONLY, *ASCENDING) if (mean := results.mean(tasks, n, key))})
        for key in PLOTTED
    ]


def _head(results: Results, facts: Facts) -> list[str]:
    draws = counted(len(results.seeds), "draw")
    hours, lost = results.core_seconds()
    unknown = f", those of {counted(lost, 'early run')} not known" if lost else ""
    alone = " One draw says nothing of what draws differ by: the intervals are of the test rows alone."
    return [
        "# A new task with few rows: here, and elsewhere", "",
        f"Made by `{facts.command}` on {facts.base}, on two cores, not always of the same machine; one row a "
        "run stands in [transfer.jsonl](transfer.jsonl).",
        f"Accuracy in per cent on at most {facts.test_rows} test rows; {draws} of n labelled "
        "rows in all, the same rows for all methods. Intervals are 95%: the variance of the draws (pooled over the "
        "tasks of a mean, or for one task over its n; Student's t) and that of the test rows, paired where two "
        f"methods are compared.{'' if len(results.seeds) > 1 else alone} Of more than 64 rows ours hold a quarter "
        "out, as the service does, to say how far to train and to tune; the other methods train on all. "
        f"All runs together took {hours / 3600:.1f} hours of one core (at most {MOST_HOURS} were wanted){unknown}.", "",
        *_left(facts.missing),
    ]  # fmt: skip


def _left(missing: Sequence[TrainingRun]) -> list[str]:
    """Which runs of the plan are not there."""
    if not missing:
        return []
    shots: dict[Key, set[int]] = {}
    for run in missing:
        shots.setdefault(Key(run.method, run.start), set()).add(run.shots)
    which = "; ".join(f"{title(key)}, n = {joined(sorted(counts))}" for key, counts in shots.items())
    return [f"**{were(len(missing), 'run')} not made ({which}); what depends on them is left out.**", ""]


def _accuracies(results: Results, tasks: Sequence[str], shots: int) -> list[str]:
    only = f"Embedding only and TF-IDF were run. With {shots} rows a task of more labels (TREC has six) lacks some."
    text = [
        f"## n = {shots}", "", *([only, ""] if shots in EMBEDDING_ONLY else []),
        *table(("method", *(TITLES[task] for task in tasks), "mean", "rows trained on", "core seconds")),
    ]  # fmt: skip
    rows = []
    for key in TABLED:
        cells = [results.mean([task], shots, key) for task in tasks]
        if not any(cells):
            continue
        mean = results.mean(tasks, shots, key)
        rows.append(
            table_row(title(key), *map(plain, cells), mean.shown if mean else NONE, *_cost(results, shots, key))
        )
    return [*text, *rows, ""] if rows else []


def _cost(results: Results, shots: int, key: Key) -> tuple[str, str]:
    """Rows that a run trained on, and its seconds of one core, on average; the first runs kept none, nor do those that
    another run has trained.

    Results computed from other runs have no cost: theirs holds a tuning that `auto` may do without.
    """
    if key.method == BY_RULE:
        return NONE, NONE
    runs = [run for task in results.hands for run in results.runs(task, shots, key)]
    rows = [results.rows[run] for run in runs if run in results.rows]
    passes, seconds = statistics.fmean(row["row_passes"] for row in rows), [row.get("seconds") for row in rows]
    known = [spent for spent in seconds if spent is not None]
    of = f" ({len(known)} of {len(runs)} runs)" if len(known) < len(runs) else ""
    return f"{passes:,.0f}", f"{statistics.fmean(known):.1f}{of}" if known else NONE


def _beside_others(results: Results, tasks: Sequence[str]) -> list[str]:
    text = [
        "## Compared with the others", "",
        "Points that ours, from auto, is above the other on the mean over the tasks; a deficit is negative.", "",
        *table(("ours", "n", "tasks", *map(title, OTHERS))),
    ]  # fmt: skip
    among = {"all": tasks, f"but {ungated()}": [task for task in tasks if task not in UNGATED]}
    for key, shots, name in product((*OURS, RULED), ASCENDING, among):
        gains = [results.gain(among[name], shots, key, other) for other in OTHERS]
        if any(gains):
            text.append(table_row(METHODS[key.method], shots, name, *map(signed, gains)))
    return [*text, ""]


def _beside_hand(results: Results) -> list[str]:
    text = [
        "## Auto compared with the paper's source", "",
        f"p: that auto is not below, one-sided, after Holm over the cells of a method; {ungated()} is shown and not "
        "judged.", "",
        *table("method | task | n | hand-picked | auto took | gain | p"),
    ]  # fmt: skip
    for method, _, _ in OURS:
        for beside in results.beside_hand(method, ASCENDING):
            p_value = NONE if beside.p_value is None else f"{beside.p_value:.3f}{' (below)' if beside.below else ''}"
            took = _taken(results, beside.task, beside.shots, method)
            text.append(table_row(METHODS[method], TITLES[beside.task], beside.shots, results.hands[beside.task], took,
                             signed(beside.gain), p_value))  # fmt: skip
    return [*text, ""]


def _taken(results: Results, task: str, shots: int, method: str) -> str:
    runs = [TrainingRun(task, shots, seed, method, AUTO) for seed in results.seeds]
    return ", ".join(results.rows[run]["chosen"] for run in runs)


def _regrets(results: Results) -> list[str]:
    text = [
        "## Regret of auto", "",
        "Embedding only (a tuning from every source was not in the plan): points below the oracle, the start (random "
        "or a source) that is best on the other draws, "
        "scored on this one. Below zero auto found something better, or what is best on the other draws is not on "
        "this one. Means have Student's t over the tasks: what chooses the oracle makes their draws depend on one "
        "another. Of so few tasks the bootstrap that stands beside the verdict is too narrow (90 to 92% for 95%).", "",
        *table("tasks | n | regret"),
    ]  # fmt: skip
    regrets = results.regrets("embedding", WITH_EVERY_SOURCE)
    text += [table_row(TITLES[task], n, regret.shown) for (task, n), regret in figures(regrets, by_task=True).items()]
    for counts in (*((n,) for n in WITH_EVERY_SOURCE), WITH_EVERY_SOURCE):
        of_these = {place: matrix for place, matrix in regrets.items() if place[1] in counts}
        if not results.hands or len(of_these) < len(results.hands) * len(counts):
            continue  # a mean of some tasks is not that of all
        text.append(table_row("**all**", joined(counts), f"**{figure_of_tasks(of_these).shown}**"))
        judged: Cells = {place: matrix for place, matrix in of_these.items() if place[0] not in UNGATED}
        if judged:
            text.append(table_row(f"all but {ungated()}", joined(counts), figure_of_tasks(judged).shown))
    return [*text, ""]


def _every_source(results: Results, tasks: Sequence[str]) -> list[str]:
    text, starts = ["## Every start, embedding only", ""], (AUTO, RANDOM, *SOURCES)
    text += table(("n", "start", *(TITLES[task] for task in tasks)))
    for shots in WITH_EVERY_SOURCE:
        for start in starts:
            cells = [results.mean([task], shots, Key("embedding", start)) for task in tasks]
            if any(cells):
                text.append(table_row(shots, start, *map(plain, cells)))
    return [*text, ""]


def _more_samples(results: Results) -> list[str]:
    others = (OURS[1], Key("full"), Key("tfidf"))
    text = [
        "## With more rows", "",
        "Footnote 4 of the paper: embedding-only tuning is lower with few samples and comparable with more; here that "
        f"is to be at most {NEAR:g} points below hypernetwork + embedding on the mean of these tasks. Both are from "
        "auto; in brackets what embedding only has more than the other. The other methods were not run.", "",
        *table(("n", "task", METHODS["embedding"], *(METHODS[key.method] for key in others))),
    ]  # fmt: skip
    places = [(task, shots) for shots in MORE_SAMPLES for task in of_more(results)]
    alone = results.each(places, OURS[0])
    columns = [(results.each(places, key), results.gains(places, OURS[0], key)) for key in others]
    for task, shots in places:
        cells = [f"{plain(of.get((task, shots)))} [{signed(gains.get((task, shots)))}]" for of, gains in columns]
        if (task, shots) in alone or any((task, shots) in of for of, _ in columns):
            text.append(table_row(shots, TITLES[task], with_interval(alone.get((task, shots))), *cells))
    return [*text, ""]


def _recipes(results: Results, facts: Facts) -> list[str]:
    text = [
        "## How each was trained", "",
        "All read the same tokens, train the loss that is scored (the distribution over the task's labels) and start "
        "from the base's backbone, which has learned the source tasks. Ours may answer in other label words than the "
        "task's, where the start fits better with its own (`words` in the rows); the others keep the task's. "
        "Embedding only is the service's own training, "
        "whose recipe was chosen on source tasks and made kinds ([recipes.md](recipes.md)); hypernetwork + embedding "
        "goes on from there with its own tuning, whose recipe was chosen on made kinds of tasks "
        "([tuning.md](tuning.md)), as far as the folds or the held-out rows ask for it, and no guard. What `auto` "
        "publishes is read off the same runs: the rule and those rows say whether it is that or the embedding alone. "
        f"No target's accuracy chose either. The baselines' recipes were tried on the sources too (`{CHOSEN_BY}`; "
        f"{CHOSEN_WITHOUT}; those rows were not kept). There the backbone "
        "answers a task as it is, so recipes that train little win, which could be too little on a target that it "
        f"has not seen: of each baseline that is trained, two recipes ran on the first draw of n = {CHOSEN_AT[0]}, a "
        "gentle one (what the source tasks favour: the lowest rate and the fewest steps of those tried) and a usual "
        "one, and it is credited with the one that was better "
        "there on the mean over the targets, that is, on test rows: an advantage to the "
        "baselines that ours does not have. The tables show that one, which ran everywhere. With more rows "
        f"they have {EPOCHS} epochs at least. Row counts and seconds of each stand in the tables: the "
        "probe's rows are not among those trained on, its seconds are in those of ours. Where auto took a start that "
        "is trained from for itself, that is one training, and its seconds count once.", "",
        *table("method | learning rate | steps | rows a step | first draw | credited"),
    ]  # fmt: skip
    for (method, name), recipe in facts.recipes.items():
        cells = [
            f"{recipe.learning_rate:g}",
            recipe.steps,
            recipe.batch,
            with_interval(results.chosen_by(method, name)),
        ]
        text.append(table_row(title(Key(method, recipe=name)), *cells, "yes" if CREDITED[method] == name else ""))
    return [*text, *_details(results, facts)]


def _details(results: Results, facts: Facts) -> list[str]:
    """The rest of the recipes."""
    embedding, tuning = (listed(settings) for settings in (facts.embedding, facts.tuning))
    return [
        "",
        f"Embedding only: {embedding}. Tuning: {tuning}; it holds the embeddings of the base's sources in place. "
        "The T5 norms stay as they are under ours. Adapters† are new "
        "ones for the task, with the T5 norms beside them; γ starts at 0, since from 1, as the authors have it, a "
        "small backbone forgets what it knows ([ablations.md](ablations.md)). LoRA and prompt tuning are "
        "PEFT's: q and v, α = 16; 20 vectors that start as tokens.", "",
        "Ours are trained with products in bfloat16 where the CPU has them "
        "([decision 17](../../docs/decisions/0017-what-is-trained-is-computed-in-bfloat16-where-the-cpu-can.md)), "
        "the others "
        f"in float32{_early(results)}: between them seconds do not compare, nor from one day to "
        "another.", "",
    ]  # fmt: skip


def _early(results: Results) -> str:
    """Where ours were trained before there was bfloat16."""
    counts = sorted({run.shots for run, row in results.rows.items() if row.get("arithmetic") == FLOAT32})
    return f", and so are ours of n = {joined(counts)}, which were there before" if counts else ""
