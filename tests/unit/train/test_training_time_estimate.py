"""The time estimate counts the rows of a training as it passes them through the model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from onboard.data.limits import HOLDOUT_FREE_ROWS
from onboard.data.splits import holdout
from onboard.domain.dataset import Dataset, Example
from onboard.jobs.estimate import GUARD_SECONDS, HELD_SECONDS, train_passes, tuning_seconds
from onboard.model.batch import LabelledRows, TrainingSet
from onboard.model.cost import Passes
from onboard.model.engine import Engine
from onboard.model.side_by_side import Moved, TrainingRun
from onboard.train import crossvalidation, fewshot, learning
from onboard.train.learning import Validation, learn
from onboard.train.settings import FewShotSettings

SIZE = 16


@dataclass
class Counted:
    """Rows that went through the model."""

    scored: int = 0
    trained: int = 0

    def train(self, engine: Engine, runs: Sequence[TrainingRun], *more: Any) -> list[Moved]:
        self.trained += sum(len(batch) for run in runs for batch in run.batches)
        return [Moved(run.start, (0.5,) * len(run.batches), np.zeros((len(run.batches), SIZE))) for run in runs]

    def score(self, engine: Engine, ids: Sequence[Sequence[int]], *more: Any) -> np.ndarray:
        self.scored += len(ids)
        return np.full((len(ids), 2), np.log(0.5))


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Counted:
    counts = Counted()
    monkeypatch.setattr(fewshot, "train_side_by_side", counts.train)
    monkeypatch.setattr(learning, "log_probabilities", counts.score)
    monkeypatch.setattr(crossvalidation, "mixed_log_probabilities", counts.score)
    return counts


def labelled(rows: Sequence[Example], tokens: int) -> LabelledRows:
    targets = np.eye(2, dtype=np.float32)[[int(row.label == "b") for row in rows]]
    return LabelledRows([[7] * tokens for _ in rows], targets)


@pytest.mark.parametrize("tokens", [12, 128])
@pytest.mark.parametrize("count", [1, 7, 10, 17, 32, 48, 64, 65, 100, 200, 1500])
def test_training_passes_as_many_rows_as_the_estimate_says(
    tiny_engine: Engine, counted: Counted, count: int, tokens: int
) -> None:
    rows = tuple(Example(f"text {number}", None, ("a", "b")[number % 2]) for number in range(count))
    dataset = holdout(Dataset("classification", ("a", "b"), rows), 0)
    train, validation = dataset.train, dataset.validation
    learn(
        tiny_engine, TrainingSet(labelled(train, tokens), tiny_engine.trie(["a", "b"])),
        np.zeros(SIZE, dtype=np.float32), FewShotSettings().for_rows(len(train)), 0,
        Validation(
            dataset, cross_validated=not validation and len(train) <= HOLDOUT_FREE_ROWS,
            held=labelled(validation, tokens) if validation else None,
        ),
    )  # fmt: skip
    passes = train_passes(len(train), len(validation), tokens)
    assert passes.scored == counted.scored
    assert passes.trained == pytest.approx(counted.trained, rel=0.02)  # batches differ by a row, in an order by chance


def test_a_regression_has_no_curve_and_a_gpu_time_for_one() -> None:
    plain, scale, quick = (train_passes(32, 0, 128, **more) for more in ({}, {"regression": True}, {"gpu": True}))
    assert plain == scale
    assert quick.scored - plain.scored == 32
    assert quick.trained > plain.trained
    assert train_passes(32, 0, 128, regression=True, gpu=True) == plain
    assert train_passes(32, 0, 12) == quick


def test_a_tuning_is_counted_with_its_look_its_folds_and_the_guard() -> None:
    few, held = tuning_seconds(32, 0, 32), tuning_seconds(96, 32, 32)
    step = HELD_SECONDS + Passes(trained=8).seconds(32)
    assert few - GUARD_SECONDS == pytest.approx((80 + 4 * 60 + 4 * 12) * step)
    assert held - GUARD_SECONDS == pytest.approx((120 + 24) * step)
    assert 60 < few < 120  # one to two minutes of two cores, as they were measured
