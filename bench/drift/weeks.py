"""Weeks of texts drawn from the rows of a held-out task, and when an alarm would have been."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from bench.harness.rows import Row
from bench.heldout.features import Features
from bench.heldout.material import Cell, LoadedBase
from bench.heldout.plan import AS_THEY_COME, READOUT, ArmRun
from bench.heldout.readouts import fit_alone
from onboard.domain.dataset import Dataset, Example
from onboard.errors import InputError
from onboard.statistics.drift import (
    EVERY,
    Sums,
    Training,
    answers_of,
    beyond_level,
    compare,
    look_at,
    sums_of_answers,
    sums_of_features,
)
from onboard.statistics.novelty import Novelty, find_novelty
from onboard.statistics.readout import Readout

TOPIC: Final = 0.2  # share of the texts that are of another task
NEVER: Final = 0  # texts until an alarm, where there was none


@dataclass(frozen=True)
class Served:
    """A version, as far as drift is concerned."""

    readout: Readout
    novelty: Novelty | None
    training: Training
    width: int

    def sums(self, features: np.ndarray) -> Sums:
        """Of texts with these features (n, …)."""
        own = features[:, : self.width]
        unknown = None if self.novelty is None else self.novelty.unknown(own)
        answers = sums_of_answers(*answers_of(self.readout.probabilities(features), several=False), unknown)
        return answers + sums_of_features(own, len(answers.labels))


def served(cell: Cell, features: Features, width: int) -> Served:
    """The version that a job would publish from the drawn rows. Raises InputError: the rows make no readout."""
    fitted, bench = fit_alone(cell, features), cell.bench
    rows, held = bench.dataset.train, bench.dataset.validation
    read = features.of(cell.task, rows)
    unread = features.of(cell.task, held)[:, :width] if held else read[:0, :width]
    groups = bench.targets(rows).argmax(1)
    novelty = find_novelty(read[:, :width], groups, unread, read[:1, :width])
    answers = fitted.readout.probabilities(features.of(cell.task, held)) if held else fitted.probabilities
    sums = sums_of_answers(*answers_of(answers, several=False))
    sums += sums_of_features(np.concatenate([read[:, :width], unread]), len(sums.labels))
    if novelty is not None:
        judged, unknown = novelty.left_out(len(rows), len(held))
        sums = replace(sums, judged=judged, unknown=unknown)
    return Served(fitted.readout, novelty, Training(sums, held_out=bool(held)), width)


def texts_until_alarm(
    version: Served, week: np.ndarray, before: Sums | None, found: dict[str, int] | None = None
) -> int:
    """How many texts of a week (n, …) come in until there is an alarm; `NEVER` where there is none.

    Args:
        before: of the week before; None of a first week.
        found: counts what the alarm rests on.
    """
    now, done = Sums.empty(len(version.training.sums.labels)), 0
    for texts in range(1, len(week) + 1):
        look = look_at(texts)
        if look != texts:
            continue
        now, done = now + version.sums(week[done:texts]), texts
        against = [(version.training.sums, version.training.names, "training")]
        against += [] if before is None else [(before, EVERY, "week before")]
        comparisons = [(compare(now, sums), names) for sums, names, _ in against]
        alarms = zip(beyond_level(comparisons, look), against, strict=True)
        beyond = [f"{name}, {of}" for names, (_, _, of) in alarms for name in names]
        if beyond:
            for name in beyond if found is not None else ():
                assert found is not None
                found[name] = found.get(name, 0) + 1
            return texts
    return NEVER


@dataclass(frozen=True)
class Plan:
    """How much is simulated.

    Args:
        rows: that a version is made of, in turn.
        draws: of these rows, for each number.
        orders: of the other rows of the task, for each draw.
        week: texts.
    """

    rows: Sequence[int] = (32, 200)
    draws: int = 3
    orders: int = 5
    week: int = 1000


def of_task(
    place: LoadedBase, task: str, whole: Dataset, others: tuple[str, Sequence[Example]], features: Features, plan: Plan
) -> list[Row]:
    """A line for each number of rows, draw and order of a task: texts until an alarm in four weeks.

    `first` and `second` are weeks without drift, of which the second has a week before it. In `new_first` and
    `new_second` a share `TOPIC` of the texts is of another task.
    """
    width = int(place.engine.backbone.config.d_model)
    lines: list[Row] = []
    strange_features = features.of(others[0], others[1])
    every = list({row.text_a + str(row.text_b): row for row in (*whole.train, *whole.test)}.values())
    for number in plan.rows:
        for draw in range(plan.draws):
            cell = Cell(place, whole, ArmRun(task, number, draw, READOUT, AS_THEY_COME))
            taken = {(row.text_a, row.text_b) for row in (*cell.dataset.train, *cell.dataset.validation)}
            pool = [row for row in every if (row.text_a, row.text_b) not in taken][: 2 * plan.week]
            if len(pool) < 2 * plan.week:
                continue
            try:
                version = served(cell, features, width)
            except InputError:
                continue
            read = features.of(task, pool)
            wide = np.zeros((len(strange_features), read.shape[1]), dtype=np.float32)
            wide[:, : min(wide.shape[1], strange_features.shape[1])] = strange_features[:, : wide.shape[1]]
            for order in range(plan.orders):
                lines.append(_line(version, read, wide, plan, np.random.default_rng([draw, order, number])))
                lines[-1] |= {"task": task, "rows": number, "draw": draw, "order": order, "other": others[0]}
    return lines


def _line(version: Served, read: np.ndarray, strange: np.ndarray, plan: Plan, rng: np.random.Generator) -> Row:
    drawn = read[rng.permutation(len(read))]
    weeks = drawn[: plan.week], drawn[plan.week : 2 * plan.week]
    before = version.sums(weeks[0])
    mixed = []
    for week in weeks:
        is_new = rng.random(len(week)) < TOPIC
        changed = week.copy()
        changed[is_new] = strange[rng.choice(len(strange), int(is_new.sum()), replace=len(strange) < is_new.sum())]
        mixed.append(changed)
    found: dict[str, int] = {}
    counts: Mapping[str, int] = {
        "first": texts_until_alarm(version, weeks[0], None, found),
        "second": texts_until_alarm(version, weeks[1], before, found),
        "new_first": texts_until_alarm(version, mixed[0], None),
        "new_second": texts_until_alarm(version, mixed[1], before),
    }
    return {**counts, "false": found}
