"""The results of the runs, and what their methods are called: means, paired differences, regret, Holm's correction.

Intervals are those of `bench.harness.figures`.

Regret has an oracle that is chosen on the other draws, so its draws are not independent: there only tasks count, each
with one mean.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

import numpy as np

from bench.harness.figures import LEVEL, CellKey, Figure, Matrix, figure, figures
from bench.harness.holm import holm_adjusted
from bench.harness.rows import Row, unpacked
from bench.transfer.cells import AUTO, BASELINES, RANDOM, SHOTS, SOURCES, TITLES, UNGATED, TrainingRun
from bench.transfer.recipes import CHOSEN_AT, CREDITED

BY_RULE: Final = "by rule"  # a method that is read off the tuned runs

Rows = Mapping[TrainingRun, Row]
Hands = Mapping[str, str]  # hand-picked source of each task


class Key(NamedTuple):
    """The key of runs that are counted together.

    Args:
        method: one of OURS or BASELINES.
        start: of ours; `hand` is each task's hand-picked source.
        recipe: of a baseline that is trained; empty for the one that it is credited with.
    """

    method: str
    start: str = ""
    recipe: str = ""


METHODS: Final = {
    "embedding": "embedding only", "hypernetwork": "hypernetwork + embedding",
    BY_RULE: "what `--tune-hypernetwork auto` publishes", "full": "full fine-tuning",
    "adapters": "Adapters†", "lora": "LoRA, r = 8", "prompt": "prompt tuning", "tfidf": "TF-IDF + logistic regression",
}  # fmt: skip
STARTS: Final = {AUTO: "auto", "hand": "hand-picked", RANDOM: "random"}
OURS: Final = (Key("embedding", AUTO), Key("hypernetwork", AUTO))
RULED: Final = Key(BY_RULE, AUTO)
OTHERS: Final = tuple(Key(method) for method in BASELINES)
ASCENDING: Final = tuple(sorted(SHOTS))


def title(key: Key) -> str:
    """The name of a method, with its start or recipe."""
    return ", ".join(part for part in (METHODS[key.method], STARTS.get(key.start, key.start), key.recipe) if part)


def ungated() -> str:
    """The tasks that are shown and not judged."""
    return ", ".join(TITLES[task] for task in UNGATED)


def with_rule(rows: Rows) -> dict[TrainingRun, Row]:
    """The rows, and next to each tuned run what `--tune-hypernetwork auto` would have published, as a run of `BY_RULE`.

    Where the rule or the folds say no, those are the answers of the embedding alone.
    """
    by_rule = {
        replace(run, method=BY_RULE): {**row, "correct": row["auto"]} for run, row in rows.items() if "auto" in row
    }  # fmt: skip
    return {**rows, **by_rule}


@dataclass(frozen=True)
class Results:
    """The finished rows of a suite.

    Args:
        rows: by run.
        hands: hand-picked source of each task.
        seeds: the draws that a figure needs all of.
    """

    rows: Rows
    hands: Hands
    seeds: tuple[int, ...]

    def matrix(self, task: str, shots: int, key: Key) -> Matrix | None:
        """Right answers of one task (S, R); None where a draw is missing."""
        runs = self.runs(task, shots, key)
        if any(run not in self.rows for run in runs):
            return None
        return np.stack([unpacked(self.rows[run]["correct"], self.rows[run]["rows"]) for run in runs])

    def runs(self, task: str, shots: int, key: Key) -> list[TrainingRun]:
        """One for each draw."""
        start = self.hands[task] if key.start == "hand" else key.start
        recipe = key.recipe or CREDITED.get(key.method, "")
        return [TrainingRun(task, shots, seed, key.method, start, recipe) for seed in self.seeds]

    def chosen_by(self, method: str, recipe: str) -> Figure | None:
        """Accuracy of a baseline's recipe over the tasks where both run; None where one is missing."""
        shots, seed = CHOSEN_AT
        return replace(self, seeds=(seed,)).mean(self.hands, shots, Key(method, recipe=recipe))

    def mean(self, tasks: Iterable[str], shots: int, key: Key) -> Figure | None:
        """Accuracy over tasks; None where one is missing."""
        return _whole({(task, shots): self.matrix(task, shots, key) for task in tasks})

    def gain(self, tasks: Iterable[str], shots: int, key: Key, other: Key) -> Figure | None:
        """Accuracy of `key` less that of `other`; None where a task is missing for either."""
        return _whole({(task, shots): self._difference(task, shots, key, other) for task in tasks})

    def gains(self, places: Iterable[CellKey], key: Key, other: Key) -> dict[CellKey, Figure]:
        """The same of each place where both were measured, by itself."""
        differences = {(task, shots): self._difference(task, shots, key, other) for task, shots in places}
        return figures(_there(differences), by_task=True)

    def each(self, places: Iterable[CellKey], key: Key) -> dict[CellKey, Figure]:
        """Accuracy at each place where it was measured."""
        return figures(_there({(task, shots): self.matrix(task, shots, key) for task, shots in places}), by_task=True)

    def _difference(self, task: str, shots: int, key: Key, other: Key) -> Matrix | None:
        one, two = self.matrix(task, shots, key), self.matrix(task, shots, other)
        return None if one is None or two is None else one - two

    def measured(self, task: str, shots: int, key: Key) -> bool:
        """Whether every draw is there."""
        return all(run in self.rows for run in self.runs(task, shots, key))

    def regrets(self, method: str, shots: Sequence[int]) -> dict[CellKey, Matrix]:
        """Loss of auto against the oracle, by task and n: the start (random or a source) that is best on the mean of
        the other draws, scored on this one (S, R). Only where every start was measured, and with two draws at least."""
        regrets = {}
        for task in self.hands:
            for count in shots:
                auto = self.matrix(task, count, Key(method, AUTO))
                names = (RANDOM, *(source for source in SOURCES if source != task))
                others = [self.matrix(task, count, Key(method, name)) for name in names]
                there = [answers for answers in others if answers is not None]
                if auto is None or len(there) < len(names) or len(self.seeds) < 2:
                    continue
                regrets[task, count] = oracle(np.stack(there)) - auto
        return regrets

    def core_seconds(self) -> tuple[float, int]:
        """Of all runs, each training counted once, and of how many runs none were kept."""
        taken = {run: row.get("seconds") for run, row in self.rows.items() if run.method != BY_RULE}
        known = {run: seconds for run, seconds in taken.items() if seconds is not None}
        again = (known.get(replace(run, method="embedding"), 0.0) for run in known if run.method == "hypernetwork")
        lost = sum(seconds is None and "trained_as" not in self.rows[run] for run, seconds in taken.items())
        return sum(known.values()) - sum(again), lost

    def beside_hand(self, method: str, shots: Sequence[int]) -> list[Beside]:
        """Auto less the hand-picked source in each (task, n), with Holm's correction over those that are gated."""
        places = [(task, count) for count in shots for task in self.hands]
        gains = self.gains(places, Key(method, AUTO), Key(method, "hand"))
        gated = [place for place in gains if place[0] not in UNGATED]
        adjusted = dict(zip(gated, holm_adjusted([gains[place].below for place in gated]), strict=True))
        return [Beside(*place, gain, adjusted.get(place)) for place, gain in gains.items()]


def _there(cells: Mapping[CellKey, Matrix | None]) -> dict[CellKey, Matrix]:
    return {place: matrix for place, matrix in cells.items() if matrix is not None}


def _whole(cells: Mapping[CellKey, Matrix | None]) -> Figure | None:
    """The mean, where every cell was measured."""
    there = _there(cells)
    return figure(there) if there and len(there) == len(cells) else None


@dataclass(frozen=True)
class Beside:
    """Auto next to the hand-picked source.

    Args:
        task, shots: where.
        gain: auto's accuracy less the other's.
        p_value: that auto is not below, one-sided, after Holm; None where it is not gated.
    """

    task: str
    shots: int
    gain: Figure
    p_value: float | None

    @property
    def below(self) -> bool:
        """Whether auto is significantly below."""
        return self.p_value is not None and self.p_value < LEVEL


def oracle(starts: np.ndarray) -> Matrix:
    """Right answers (S, R) of the start that is best on the mean of the other draws; the mean of those that tie.

    Args:
        starts: (C, S, R) right answers.
    """
    means = starts.mean(-1)  # (C, S)
    answers = np.empty(starts.shape[1:])
    for seed in range(starts.shape[1]):
        of_others = np.delete(means, seed, axis=1).mean(1)
        best = np.isclose(of_others, of_others.max(), rtol=0, atol=1e-12)
        answers[seed] = starts[best, seed].mean(0)
    return answers
