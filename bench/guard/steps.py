"""The guard itself, asked about planted steps: how much of each it accepts, and what that truly costs."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Any, Final

import numpy as np

from bench.guard.changes import moved
from bench.guard.material import MOST_TOKENS, Task
from bench.guard.measured import SIZES, Change, Effect, effects, question
from bench.guard.rates import HARMLESS
from bench.harness.rows import Row, Rows
from onboard.guard import GuardSettings, Step, guard
from onboard.guard.answers import answers
from onboard.guard.canaries import canary_ids
from onboard.model.engine import Engine
from onboard.model.hypernetwork import Hypernetwork
from onboard.model.protected import ProtectedTask, Protection

SEEDS: Final = 5  # of the guard's halves and canaries
_ANSWERS: Final = ("shares", "losses")


@dataclass(frozen=True)
class JudgedStep:
    """The verdict of the guard on a step, and the truth about it.

    Args:
        direction: where it leads.
        size: planted, of the whole step.
        whole: true increase of the log-loss of the task that loses most by the whole step, nats.
        shares: that were accepted, one a seed; 0 where all was refused.
        losses: the same increase by each of these shares; 0 where all was refused.
    """

    direction: str
    size: float
    whole: float
    shares: tuple[float, ...]
    losses: tuple[float, ...]


def judged(
    engine: Engine,
    prepare: Callable[[], Sequence[Task]],
    directions: Mapping[str, Callable[[], Hypernetwork]],
    changes: Sequence[Change],
    work: Path,
    settings: GuardSettings,
    made: Mapping[str, Any],
) -> list[JudgedStep]:
    """Every direction in every size, judged with each seed; a line is appended for each that the file lacks.

    The tasks have no held-out rows, as most have none: the guard looks at their own texts and canaries.

    Args:
        engine, prepare, directions, work: as of `measured.measure_all`.
        changes: what that found: how large the steps are.
        settings: of the guard.
        made: what the numbers depend on next to the guard's settings, JSON-compatible.
    """
    rows = Rows(work, {**made, "guard": asdict(settings), "seeds": SEEDS})
    known = {(row["judged"], row["size"]): row for row in rows if "judged" in row}
    of_whole = {(change.direction, change.size): change for change in changes}
    missing = {name: [size for size in SIZES if (name, size) not in known] for name in directions}
    asked = GuardedTasks.about(engine, prepare(), settings) if any(missing.values()) else None
    for name, make in directions.items():
        if asked is None or not missing[name]:
            continue
        end = make()
        for size in missing[name]:
            started = time.monotonic()
            step = moved(engine.hypernetwork, end, of_whole[name, size].share)
            row = known[name, size] = rows.add({"judged": name, "size": size, **asked.answered(step)})
            print(f"{name}, {size} nats: let through {row['shares']}, {time.monotonic() - started:.0f} s", flush=True)
    return [
        JudgedStep(*step, _worst(of_whole[step].effects), *(tuple(known[step][key]) for key in _ANSWERS))
        for step in product(directions, SIZES)
    ]


@dataclass(frozen=True)
class GuardedTasks:
    """The tasks as the guard knows them, and their test rows, which it does not."""

    engine: Engine
    tasks: Sequence[Task]
    before: Sequence[np.ndarray]
    settings: GuardSettings

    @classmethod
    def about(cls, engine: Engine, tasks: Sequence[Task], settings: GuardSettings) -> GuardedTasks:
        """With the answers before any step."""
        before = answers(engine, [question(task, engine.hypernetwork) for task in tasks])
        return cls(engine, tasks, before, settings)

    def answered(self, step: Hypernetwork) -> Row:
        """The shares that are accepted, one a seed, and what each costs."""
        shares = [self.share(step, seed) for seed in range(SEEDS)]
        by_share = {share: self.loss(step, share) for share in set(shares)}
        return {"shares": shares, "losses": [by_share[share] for share in shares]}

    def share(self, step: Hypernetwork, seed: int) -> float:
        """How much of the step is accepted."""
        present = self.engine.hypernetwork
        earlier = [ProtectedTask(task.name, task.z, task.trie, present, texts=task.texts) for task in self.tasks]
        canaries = [ids for ids in canary_ids(self.engine.encoder, "guard") if len(ids) <= MOST_TOKENS]
        near = np.mean([task.z for task in self.tasks], axis=0)
        judged = guard(self.engine, Step(present, step, near), Protection(earlier, canaries), self.settings, seed=seed)
        return judged.share

    def loss(self, step: Hypernetwork, share: float) -> float:
        """True increase of the log-loss of the task that loses most, nats."""
        if not share:
            return 0.0
        changed = moved(self.engine.hypernetwork, step, share)
        return _worst([Effect.read(row) for row in effects(self.engine, self.tasks, self.before, changed)])


def summary(steps: Sequence[JudgedStep], margin: float) -> dict[str, int]:
    """How many answers there are and how many are wrong.

    Args:
        steps: with what the guard said of each.
        margin: what a task may lose, nats. A step is harmless that costs no task more than a quarter of it.

    Returns:
        `harmless` and of these `held_back` (not accepted whole) and `refused` (nothing accepted); `let_through`
        (any share of any step) and of these `missed` (some task loses more than the margin by it).
    """
    harmless = [share for step in steps if step.whole <= HARMLESS * margin for share in step.shares]
    through = [loss for step in steps for share, loss in zip(step.shares, step.losses, strict=True) if share]
    return {
        "harmless": len(harmless), "held_back": sum(share < 1.0 for share in harmless),
        "refused": sum(not share for share in harmless),
        "let_through": len(through), "missed": sum(loss > margin for loss in through),
    }  # fmt: skip


def _worst(effects_of_step: Sequence[Effect]) -> float:
    return max(effect.increase for effect in effects_of_step)
