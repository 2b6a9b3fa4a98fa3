"""A hundred tasks in mixed batches against one after the other, in turns."""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from bench.harness.rows import Rows
from onboard.bases import Base
from onboard.guard.answers import Question, answers
from onboard.guard.canaries import canary_ids
from onboard.model.engine import Engine

TASKS: Final = 100
ROWS: Final = 64
TURNS: Final = 1
MOST_TOKENS: Final = 24


def timed(base: Base, engine: Engine, work: Path, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Seconds of computing of each turn, and the median ratio. The answers of both ways are compared, too.

    Args:
        base, engine: whose tasks are asked.
        work: JSON lines; what it holds of the same settings is not timed again.
        settings: what the numbers depend on, JSON-compatible.
    """
    rows = Rows(work, settings)
    known = next((row for row in rows if "timing" in row), None) or rows.add({"timing": _timed(base, engine)})
    timing: dict[str, Any] = known["timing"]
    return timing


def _timed(base: Base, engine: Engine) -> dict[str, Any]:
    questions = _questions(base, engine)
    together: list[float] = []
    apart: list[float] = []
    furthest = 0.0
    for _ in range(TURNS):
        started = time.process_time()
        mixed = answers(engine, questions)
        together.append(time.process_time() - started)
        started = time.process_time()
        single = [answers(engine, [question])[0] for question in questions]
        apart.append(time.process_time() - started)
        furthest = max(float(np.abs(a - b).max()) for a, b in zip(mixed, single, strict=True))
    ratio = statistics.median(one / all_ for one, all_ in zip(apart, together, strict=True))
    return {
        "tasks": TASKS, "rows": ROWS, "together_seconds": [round(seconds, 1) for seconds in together],
        "apart_seconds": [round(seconds, 1) for seconds in apart], "ratio": round(ratio, 2), "furthest": furthest,
    }  # fmt: skip


def _questions(base: Base, engine: Engine) -> Sequence[Question]:
    """The base's tasks and anchors, over again where they are too few, with a draw of the shorter canaries each."""
    known = [*base.sources, *base.anchors]
    everything = [*canary_ids(engine.encoder, "guard"), *canary_ids(engine.encoder, "tuning")]
    texts = [ids for ids in everything if len(ids) <= MOST_TOKENS]
    questions = []
    for number in range(TASKS):
        task = known[number % len(known)]
        drawn = np.random.default_rng(number).permutation(len(texts))[:ROWS]
        ids = [texts[place] for place in drawn]
        questions.append(Question(engine.hypernetwork, base.embeddings[task.name], engine.trie(task.words), ids))
    return questions
