"""The effect of every change on every task, row by row; finished changes stand in a file."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from bench.guard.changes import moved
from bench.guard.material import SINGLES, Task
from bench.harness.rows import Rows
from onboard.guard.answers import Question, answers
from onboard.guard.verdicts import Seen
from onboard.model.engine import Engine
from onboard.model.hypernetwork import Hypernetwork

SIZES: Final = (0.002, 0.008, 0.032)  # planted: mean divergence over the tasks' test rows, nats, more or less
_SIZED_ON: Final = 12  # rows of each task that find the share of such a size
_TRIED: Final = 0.25
_DIGITS: Final = 6
_NUMBERS: Final = ("changes", "weights", "divergences", "own", "singles", "pairs")  # of an effect, in this order


@dataclass(frozen=True)
class Effect:
    """The effect of one change on one task.

    Args:
        task: its name.
        changes: (m,) change of the log-loss of each test row, nats.
        weights: (m,) of the test rows, of mean 1.
        divergences: (m,) KL(before ‖ after) of the test rows.
        own: the same of the texts that the task was trained on.
        singles, pairs: the same of canaries.
        flipped: share of the test rows with another answer.
    """

    task: str
    changes: np.ndarray
    weights: np.ndarray
    divergences: np.ndarray
    own: np.ndarray
    singles: np.ndarray
    pairs: np.ndarray
    flipped: float

    @classmethod
    def read(cls, row: Mapping[str, Any]) -> Effect:
        """From a line of the work file."""
        changes, weights, divergences, own, singles, pairs = (np.array(row[name]) for name in _NUMBERS)
        return cls(row["task"], changes, weights, divergences, own, singles, pairs, row["flipped"])

    @property
    def increase(self) -> float:
        """Of the mean log-loss of the test rows: what the task truly loses, nats."""
        return float((self.weights * self.changes).mean())

    @property
    def error(self) -> float:
        """Its standard error."""
        return float((self.weights * (self.changes - self.increase)).std(ddof=1)) / math.sqrt(len(self.changes))


@dataclass(frozen=True)
class Change:
    """A change and what it does to all tasks."""

    direction: str
    size: float
    share: float
    effects: tuple[Effect, ...]

    @classmethod
    def read(cls, row: Mapping[str, Any]) -> Change:
        """From a line of the work file."""
        return cls(row["direction"], row["size"], row["share"], tuple(map(Effect.read, row["effects"])))


def measure_all(
    engine: Engine,
    prepare: Callable[[], Sequence[Task]],
    directions: Mapping[str, Callable[[], Hypernetwork]],
    work: Path,
    settings: Mapping[str, Any],
) -> list[Change]:
    """Every direction in every size; a line is appended for each that the file lacks.

    Args:
        engine: the base's model.
        prepare: makes the tasks; not called where nothing is missing.
        directions: where whole steps lead, by name.
        work: JSON lines, of these and of other settings.
        settings: what the numbers depend on, JSON-compatible.
    """
    rows = Rows(work, settings)
    done = {(row["direction"], row["size"]): row for row in rows if "direction" in row}
    missing = {name: [size for size in SIZES if (name, size) not in done] for name in directions}
    if any(missing.values()):
        tasks = prepare()
        before = answers(engine, [question(task, engine.hypernetwork) for task in tasks])
    for name, make in directions.items():
        if not missing[name]:
            continue
        started = time.monotonic()
        whole = make()
        tried = _divergence(engine, tasks, before, whole)
        print(f"{name}: made in {time.monotonic() - started:.0f} s", flush=True)
        for size in missing[name]:
            started = time.monotonic()
            share = _TRIED * math.sqrt(size / tried)
            lines = effects(engine, tasks, before, moved(engine.hypernetwork, whole, share))
            done[name, size] = rows.add({"direction": name, "size": size, "share": share, "effects": lines})
            print(f"{name}, {size} nats: share {share:.3f}, {time.monotonic() - started:.0f} s", flush=True)
    return [Change.read(done[name, size]) for name in directions for size in SIZES]


def question(task: Task, hypernetwork: Hypernetwork, rows: int | None = None) -> Question:
    """All that a task is asked, or the first of it."""
    return Question(hypernetwork, task.z, task.trie, task.ids[:rows])


def _divergence(engine: Engine, tasks: Sequence[Task], before: Sequence[np.ndarray], whole: Hypernetwork) -> float:
    """The mean divergence of `_TRIED` of a step on a few rows; it grows with the square of small steps."""
    changed = moved(engine.hypernetwork, whole, _TRIED)
    after = answers(engine, [question(task, changed, _SIZED_ON) for task in tasks])
    first = [old[:_SIZED_ON] for old in before]
    return float(np.mean([(np.exp(old) * (old - new)).sum(1) for old, new in zip(first, after, strict=True)]))


def effects(
    engine: Engine, tasks: Sequence[Task], before: Sequence[np.ndarray], changed: Hypernetwork
) -> list[dict[str, Any]]:
    """The effect of the changed hypernetwork on each task, as lines of the work file; `before` as of `question`."""
    after = answers(engine, [question(task, changed) for task in tasks])
    lines = []
    for task, old, new in zip(tasks, before, after, strict=True):
        seen = Seen.between(task.name, "held-out rows", old, new, task.targets, np.zeros(len(old)))
        rows = len(task.targets)
        parts = np.split(seen.divergences, np.cumsum([rows, task.own, SINGLES]))
        numbers = zip(_NUMBERS, (seen.changes, task.weights, *parts), strict=True)
        lines.append(
            {"task": task.name, "flipped": float(seen.flipped[:rows].mean())}
            | {key: [round(value, _DIGITS) for value in values.tolist()] for key, values in numbers}
        )
    return lines
