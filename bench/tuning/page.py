"""The page of bench.tuning: what each recipe gains and costs, and what the rule of `auto` would have done."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bench.harness.page import of_another_base, table, table_row
from onboard.domain.counting import counted

Row = Mapping[str, Any]


def page(document: Mapping[str, Any]) -> str:
    """The page of a document of the bench."""
    alone = {(row["variant"], row["seed"]): row for row in document["runs"] if "/" not in row["variant"]}
    tuned: dict[str, dict[tuple[str, int], Row]] = {}
    for row in document["runs"]:
        recipe, _, task = row["variant"].rpartition("/")
        if recipe:
            tuned.setdefault(recipe, {})[task, row["seed"]] = row
    cells = list(alone)
    return "\n".join([*_recipes(document, tuned, alone, cells), *_tasks(tuned, alone)]) + "\n"


def taken(row: Row, alone: Row) -> Row:
    """Both ends of what the guard accepts: the whole step, a share of it, or the embedding alone."""
    if not row["share"]:
        return {**alone, "sources": {}}
    ends: Row = row["whole" if row["share"] == 1.0 else "kept"]
    return ends


def _recipes(
    document: Mapping[str, Any], tuned: Mapping[str, Mapping[tuple[str, int], Row]],
    alone: Mapping[tuple[str, int], Row], cells: Sequence[tuple[str, int]],
) -> list[str]:  # fmt: skip
    before = np.array([alone[cell]["accuracy"] for cell in cells])
    tfidf = 100 * np.mean([alone[cell]["tfidf"] for cell in cells])
    lines = [
        "# Tuning the hypernetwork",
        "",
        *of_another_base(document["base"]),
        f"`{document['command']}`: {counted(len(cells), 'draw')} of held-out tasks, "
        f"{document['shots']} rows each. Gains are points of accuracy on up to {document['test_rows']} test rows over "
        f"the embedding alone, which has {100 * before.mean():.1f} (TF-IDF: {tfidf:.1f}), ± 1.96 standard errors over "
        f"tasks. The loss of the sources is the mean increase of their log-loss in nats, on {document['source_rows']} "
        "labelled rows of each that neither tuning nor the guard has seen, and that of the source that loses most.",
        "",
        *table(
            "recipe | gain of the whole step | sources lose | worst | refused | "
            "mean share | gain of what is taken | sources lose | worst | seconds"
        ),
    ]
    for recipe, rows in tuned.items():
        of = [rows[cell] for cell in cells]
        ends = [taken(row, alone[cell]) for cell, row in zip(cells, of, strict=True)]
        shares = [row["share"] for row in of]
        lines.append(
            table_row(
                recipe, _gain([row["whole"] for row in of], before), *_lost([row["whole"] for row in of]),
                f"{shares.count(0.0)} of {len(shares)}", f"{np.mean(shares):.2f}", _gain(ends, before), *_lost(ends),
                f"{np.mean([row['tune_seconds'] for row in of]):.0f}",
            )
        )  # fmt: skip
    return lines


def _gain(rows: Sequence[Row], before: np.ndarray) -> str:
    gains = 100 * (np.array([row["accuracy"] for row in rows]) - before)
    half = 1.96 * gains.std(ddof=1) / math.sqrt(len(gains)) if len(gains) > 1 else 0.0
    return f"{gains.mean():+.1f} ± {half:.1f}"


def _lost(rows: Sequence[Row]) -> tuple[str, str]:
    by_run = [[source["increase"] for source in row["sources"].values()] or [0.0] for row in rows]
    return f"{np.mean([np.mean(own) for own in by_run]):+.4f}", f"{max(map(max, by_run)):+.3f}"


def _tasks(tuned: Mapping[str, Mapping[tuple[str, int], Row]], alone: Mapping[tuple[str, int], Row]) -> list[str]:
    names = list(tuned)
    lines = [
        "",
        "## Task by task",
        "",
        "Accuracy: of TF-IDF, of the embedding alone, and after what the guard takes of each recipe (its share). "
        "`auto`: whether its rule would tune, given the test rows as held-out ones.",
        "",
        *table(("task", "TF-IDF", "alone", "auto", *names)),
    ]
    for (task, seed), row in alone.items():
        after = []
        for name in names:
            of = tuned[name][task, seed]
            after.append(f"{100 * taken(of, row)['accuracy']:.1f} ({of['share']:g})")
        before = [f"{100 * row['tfidf']:.1f}", f"{100 * row['accuracy']:.1f}", "yes" if row["auto"] else "no"]
        lines.append(table_row(f"{task} {seed}", *before, *after))
    return lines
