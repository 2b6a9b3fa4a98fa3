"""The HyperFormer paper's own comparisons and ablations, at the size of a shipped base, all with the same small budget.

    python -m bench.ablations [--base mini] [--seeds 3] [--steps 600] [--processes 2]

Every variant starts from the base's frozen backbone, without its hypernetwork, and is trained on the source tasks for
the same number of steps and rows; one model per task gets its share of them. Then it is scored on the sources'
validation rows (at most 300 each): Matthews' correlation for CoLA, Pearson's for STS-B, else accuracy, and their mean.
Finished runs are kept in a work file: the same command goes on where it was stopped. Writes
bench/results/ablations.json and, from it, bench/results/ablations.md.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from bench.harness.budgeted import Budget, score, settings_of, sources_of, train, training_command
from bench.harness.command import WORK, command_of
from bench.harness.intervals import seeds_interval, shown
from bench.harness.page import NONE, of_another_base, table
from bench.harness.rows import Row
from bench.harness.runs import report_runs, run_all
from bench.harness.variants import VARIANTS, Variant
from onboard.bases import find_base
from onboard.bases.load import fresh_engine
from onboard.making.curriculum import CurriculumCounts, KindCounts, PlainTexts, Source, build_curriculum
from onboard.making.multitask.loss import Groups
from onboard.making.multitask.tasks import SourceBatches
from onboard.making.multitask.validation import HeldOut, drawn
from onboard.model.engine import Engine

AUGMENTED_KINDS = ("renamed", "restricted", "merged", "joined")
NOT_VERIFIED = "order not verified"

# Means over GLUE with T5-base in the paper's Table 1, as two public notes on it quote them: HyperFormer 86.58 beside
# HyperFormer++ 86.48, and HyperFormer++ 86.48 next to full multi-task fine-tuning 85.47. The tables themselves (1, 3, 4
# and 7; https://aclanthology.org/2021.acl-long.47) were out of reach when this was written. Whoever reads them adds the
# other means here.
TABLE_1 = {"hyperformer": 86.58, "hyperformer++": 86.48, "full": 85.47}


@dataclass(frozen=True)
class Comparison:
    """One table.

    Args:
        title: above it.
        variants: its rows.
        paper: the paper's means of those variants of which they are known; None where the paper has no such table.
    """

    title: str
    variants: tuple[str, ...]
    paper: Mapping[str, float] | None


COMPARISONS = (
    Comparison(
        "Table 1: methods",
        ("hyperformer", "hyperformer++", "adapters", "adapters-single", "full", "full-single"),
        TABLE_1,
    ),
    Comparison(
        "Table 4: what HyperFormer loses without a part",
        (
            "hyperformer", "without-adapters", "without-conditional-norm", "without-projector", "without-t5-norms",
            "without-both-norms",
        ),
        {},
    ),
    Comparison(
        "The projector's start: the authors', or scaled and slowed as in mini (not in the paper)",
        ("hyperformer++", "hyperformer++-scaled"),
        None,
    ),
    Comparison(
        "The start of γ, if the hypernetwork does not generate it: 1 as the authors have it, or 0 (not in the paper)",
        ("hyperformer", "adapters", "adapters-gamma-0", "without-conditional-norm", "without-conditional-norm-gamma-0"),
        None,
    ),
    Comparison("Table 3: more parameters for Adapters†", ("hyperformer", "adapters-r2", "adapters-r4"), {}),
    Comparison(
        "Table 7: reduction factors (the bottleneck is d_model / r)",
        ("hyperformer++-r8", "hyperformer++-r16", "hyperformer++"),
        {},
    ),
    Comparison(
        "Augmentation: the sources alone, or renamed, restricted, merged and joined too",
        ("hyperformer++", "hyperformer++-augmented"),
        None,
    ),
)  # fmt: skip


@dataclass(frozen=True)
class Options:
    """The settings that a run depends on, in addition to its variant and seed."""

    base: str
    sources: Path
    budget: Budget
    rows: int


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the missing measurements, print and write the tables."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    asked = _parser().parse_args(words)
    if not asked.sources.is_dir():
        print(f"skipped: the source tasks are not here ({asked.sources}); name their folder: --sources DIR")
        return 0
    options = Options(asked.base, asked.sources, Budget.asked_for(asked), asked.rows)
    settings = {**settings_of(asked), "rows": asked.rows}
    chosen = asked.variants or list(VARIANTS)
    plan = [(variant, seed) for seed in range(asked.seeds) for variant in chosen]
    rows = run_all(plan, partial(measure, options=options), asked.work, settings, asked.processes)
    return report_runs(command_of("ablations", words), asked, settings, rows, page)


def _parser() -> argparse.ArgumentParser:
    parser = training_command(__doc__, "ablations", steps=600, seeds=3)
    parser.add_argument("--rows", type=int, default=300, help="most validation rows of a task")
    parser.add_argument("--variants", nargs="*", choices=VARIANTS, default=[], help="only these; all when left out")
    parser.add_argument("--work", type=Path, default=WORK / "ablations.jsonl", help="finished runs")
    return parser


def measure(name: str, seed: int, options: Options) -> Row:
    """One run: a variant trained on all sources, or one model after the other, and the validation metrics."""
    variant, sources = VARIANTS[name], sources_of(options.sources)
    parts = [[source] for source in sources] if variant.single else [list(sources)]
    scores: dict[str, float] = {}
    trained = 0
    for part in parts:
        torch.manual_seed(seed)
        engine = fresh_engine(find_base(options.base))
        groups = _groups(variant, part, engine, seed)
        names = [task.name for tasks, _ in groups for task in tasks]
        method = variant.build(engine, names)
        budget = Budget(options.budget.steps // len(parts), options.budget.batch, options.budget.precision)
        regressions = {source.name for source in part if source.kind == "regression"}
        train(method, groups, budget, variant.learning_rate, seed, regressions)
        trained += sum(parameter.numel() for parameter in method.trained)
        for task, source in enumerate(part):
            held = HeldOut.of(source, drawn(source.validation, options.rows, 0), engine)
            scores[source.name] = round(score(method, task, held, _metric(source)), 2)
    return {"trained": trained, "scores": scores, "mean": round(statistics.fmean(scores.values()), 3)}


def _metric(source: Source) -> str:
    """The paper's metric; of the two that it averages for some tasks, the first."""
    return "pearson" if source.kind == "regression" else "mcc" if source.name == "cola" else "accuracy"


def _groups(variant: Variant, sources: Sequence[Source], engine: Engine, seed: int) -> Groups:
    own = tuple(SourceBatches(source, engine.encoder, seed + index) for index, source in enumerate(sources))
    if not variant.augmented:
        return ((own, 1.0),)
    made = build_curriculum(sources, _no_material(), _augmentation(), engine.encoder, seed)
    return ((own, 0.5), *((tasks, share / 8) for tasks, share in made.groups))  # at most half for the made ones


def _augmentation() -> CurriculumCounts:
    """Every task that is made from the sources alone: no plain texts, no teacher."""
    none, some = KindCounts(share=0.0, tasks=0), KindCounts(share=1.0, tasks=1000)
    kinds = ("sources", "topics", "form", "style", "pairs")
    return CurriculumCounts(
        topic_levels=(), **dict.fromkeys(kinds, none), **dict.fromkeys(AUGMENTED_KINDS, some), fewest_rows=20
    )


def _no_material() -> PlainTexts:
    words = ("yes", "no")
    return PlainTexts((), np.zeros((0, 1), dtype=np.float16), words, np.zeros((len(words), 1), dtype=np.float16))


def page(document: dict[str, Any]) -> str:
    """bench/results/ablations.md."""
    by_variant = {
        name: [run for run in document["runs"] if run["variant"] == name]
        for name in dict.fromkeys(run["variant"] for run in document["runs"])
    }
    budget = document["budget"]
    lines = [
        "# The paper's comparisons at the size of a shipped base", "",
        *of_another_base(document["base"]),
        f"Made by `{document['command'].strip()}`; the numbers of every run stand in "
        "[ablations.json](ablations.json).",
        "Each variant starts from the frozen backbone of the base, without its hypernetwork, and gets "
        f"{budget['steps']} steps of {budget['batch']} rows; one model per task gets its share of the steps.",
        f"Mean over {len(document['sources'])} source tasks on at most {document['rows']} validation rows each "
        "(CoLA: Matthews' correlation, STS-B: Pearson's, else accuracy; times 100), with the 95% interval over "
        f"{document['seeds']} seeds.",
        "So small a budget compares how fast methods learn on this backbone; the paper compares where they end on T5. "
        "r = 32 where nothing else is said. "
        "The learning rate is 1e-3, for full fine-tuning 3e-4.",
        "Where γ is generated it starts near 0, and the backbone is untouched at first. Where it is a parameter it "
        "starts at 1, as the authors have it, and every adapter adds noise of unit variance: much to a small backbone "
        "(in `mini` what a sublayer gives has a standard deviation of 0.1 to 3, but for the last two layers of the "
        "encoder). One table below shows both starts.",
        f"Of the paper's own means only these of its Table 1 (T5-base) were at hand: {_quoted()}. Everywhere else the "
        f"paper's order was not checked, and the table says: {NOT_VERIFIED}.", "",
    ]  # fmt: skip
    for comparison in COMPARISONS:
        measured = [name for name in comparison.variants if name in by_variant]
        if len(measured) < 2:
            continue
        lines += [f"## {comparison.title}", "", *_table(comparison, measured, by_variant), ""]
    return "\n".join(lines)


def _quoted() -> str:
    return ", ".join(f"{VARIANTS[name].title} {mean}" for name, mean in TABLE_1.items())


def _table(comparison: Comparison, names: Sequence[str], by_variant: dict[str, list[Row]]) -> list[str]:
    means = {name: [run["mean"] for run in by_variant[name]] for name in names}
    head = ["variant", "trained", "mean"] + ([] if comparison.paper is None else ["order beside the paper"])
    rows = []
    for name in names:
        cells = [VARIANTS[name].title, f"{by_variant[name][0]['trained']:,}", shown(means[name])]
        if comparison.paper is not None:
            cells.append(_beside_the_paper(comparison.paper, name, means))
        rows.append(cells)
    return table(head, rows)


def _beside_the_paper(paper: Mapping[str, float], name: str, means: Mapping[str, Sequence[float]]) -> str:
    """Which variants that the paper has below this one are above it here, and whether the seeds can tell.

    Args:
        paper: the paper's means, of the variants of which they are known.
        name: of the variant.
        means: of all variants, one per seed.
    """
    if name not in paper:
        return NOT_VERIFIED
    below = [other for other in means if other in paper and paper[other] < paper[name]]
    differs = []
    for other in below:
        gains = [b - a for a, b in zip(means[name], means[other], strict=True)]
        mean, low, _ = seeds_interval(gains)
        if mean > 0:
            sure = "clearly" if len(gains) > 1 and low > 0 else "within the seeds' spread"
            differs.append(f"{VARIANTS[other].title} by {mean:.1f} ({sure})")
    if differs:
        return f"**differs from the paper**: below {', '.join(differs)}"
    return f"above {', '.join(VARIANTS[other].title for other in below)}, as in the paper" if below else NONE


if __name__ == "__main__":
    sys.exit(main())
