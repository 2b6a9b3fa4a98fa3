"""Two embeddings of the tiny base that disagree, rows labelled as one of them sees them, and versions made of both."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from onboard.bases import Base, find_base
from onboard.bases.load import load_engine
from onboard.model.batched import log_probabilities
from support.published import embedding_of
from support.real_jobs import Desk, opinions


def rows_as_seen(base: Base, z: np.ndarray, count: int, start: int = 200) -> list[dict[str, Any]]:
    """Rows that carry the label which `z` gives them."""
    engine = load_engine(base, "cpu")
    rows = opinions(count, start=start)
    ids = engine.encoder.encode([(row["text"], None) for row in rows])
    best = log_probabilities(engine, ids, z, engine.trie(["no", "yes"])).argmax(1)
    return [{**row, "label": ("no", "yes")[index]} for row, index in zip(rows, best, strict=True)]


def opposed(base: Base) -> tuple[np.ndarray, np.ndarray, list[dict[str, Any]]]:
    """Two embeddings that disagree, and rows that are labelled as the first sees them: searched for once a process."""
    good, bad, rows = _opposed(base.folder)
    return good.copy(), bad.copy(), [dict(row) for row in rows]


@cache
def _opposed(folder: Path) -> tuple[np.ndarray, np.ndarray, list[dict[str, Any]]]:
    base = find_base(str(folder))
    for seed in range(200):
        good = 3 * embedding_of(seed)
        rows = rows_as_seen(base, good, 40)
        if not 10 <= sum(row["label"] == "yes" for row in rows) <= 30:
            continue
        for other in range(200):
            bad = 3 * embedding_of(1000 + other)
            if sum(one != two for one, two in zip(rows, rows_as_seen(base, bad, 40), strict=True)) >= 18:
                return good, bad, rows
    raise AssertionError("no two embeddings of this base disagree")


def learn_rivals(desk: Desk, base: Base, trained_as: Callable[[np.ndarray], None]) -> None:
    """mood@v1 answers all 40 test rows right, mood@v2 at most 22 of them."""
    good, bad, test = opposed(base)
    for z in (good, bad):
        trained_as(z)
        desk.learn(opinions(30), test=test, init="random")
