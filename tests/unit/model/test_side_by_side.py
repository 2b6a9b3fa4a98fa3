"""Embeddings that are trained as rows of one batch move as each would alone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from support.published import embedding_of
from support.refusals import refused

from onboard.errors import CancelledError
from onboard.model.engine import Engine
from onboard.model.memory import RowsAtOnce
from onboard.model.side_by_side import TrainingRun, train_side_by_side
from onboard.model.steps import Steps

SIZE = 16
TEXTS = ["good film", "bad plot", "a fine and great film", "awful plot", "happy film", "sad", "great plot", "poor"]
TARGETS = np.eye(2, dtype=np.float32)[[0, 1] * 4]
STEPS = Steps(learning_rate=0.05)


@pytest.fixture
def ids(tiny_engine: Engine) -> list[list[int]]:
    return tiny_engine.encoder.encode([(text, None) for text in TEXTS])


def runs(engine: Engine) -> list[TrainingRun]:
    """Different starts, words and rows."""
    words = (("yes", "no"), ("good", "bad"), ("yes", "no"))
    batches = ([[0, 1], [2, 3, 4]], [[5, 6, 7], [1]], [[7], [0, 3]])
    return [
        TrainingRun(embedding_of(seed), engine.trie(words[seed]), [np.array(batch) for batch in batches[seed]])
        for seed in range(3)
    ]


def test_each_moves_as_it_would_alone(tiny_engine: Engine, ids: list[list[int]]) -> None:
    together = train_side_by_side(tiny_engine, runs(tiny_engine), ids, TARGETS, STEPS)
    for run, moved in zip(runs(tiny_engine), together, strict=True):
        (alone,) = train_side_by_side(tiny_engine, [run], ids, TARGETS, STEPS)
        np.testing.assert_allclose(moved.z, alone.z, atol=1e-5)
        np.testing.assert_allclose(moved.losses, alone.losses, atol=1e-5)
        assert np.abs(moved.z - run.start).max() > 0.01


def test_the_same_arguments_give_the_same_bytes(tiny_engine: Engine, ids: list[list[int]]) -> None:
    first, second = (train_side_by_side(tiny_engine, runs(tiny_engine), ids, TARGETS, STEPS) for _ in range(2))
    assert [run.z.tobytes() for run in first] == [run.z.tobytes() for run in second]


def test_parts_that_fit_into_the_memory_add_up_to_the_whole(tiny_engine: Engine, ids: list[list[int]]) -> None:
    whole = train_side_by_side(tiny_engine, runs(tiny_engine), ids, TARGETS, STEPS)
    parts = train_side_by_side(tiny_engine, runs(tiny_engine), ids, TARGETS, STEPS, at_once=RowsAtOnce(2))
    for one, other in zip(whole, parts, strict=True):
        np.testing.assert_allclose(one.z, other.z, atol=1e-5)


def test_the_rate_may_fall(tiny_engine: Engine, ids: list[list[int]]) -> None:
    run = TrainingRun(embedding_of(1), tiny_engine.trie(["yes", "no"]), [np.arange(8)] * 12)
    (steady,) = train_side_by_side(tiny_engine, [run], ids, TARGETS, STEPS)
    (falling,) = train_side_by_side(tiny_engine, [run], ids, TARGETS, replace(STEPS, falling=True))
    moved = [np.linalg.norm(np.diff(run.course, axis=0), axis=1) for run in (steady, falling)]
    assert moved[1][-1] < 0.3 * moved[0][-1]
    np.testing.assert_allclose(steady.course[0], falling.course[0], atol=1e-6)


def test_the_norm_stays_within_its_bound(tiny_engine: Engine, ids: list[list[int]]) -> None:
    run = TrainingRun(10 * embedding_of(1), tiny_engine.trie(["yes", "no"]), [np.arange(8)] * 3)
    (moved,) = train_side_by_side(tiny_engine, [run], ids, TARGETS, STEPS)
    assert max(moved.norms) <= 2.0 * SIZE**0.5 + 1e-4


def test_it_can_be_stopped_after_every_step(tiny_engine: Engine, ids: list[list[int]]) -> None:
    steps: list[int] = []

    def stop(step: int, loss: float) -> None:
        steps.append(step)
        raise CancelledError("The job was cancelled.")

    with pytest.raises(CancelledError):
        train_side_by_side(tiny_engine, runs(tiny_engine), ids, TARGETS, STEPS, stop)
    assert steps == [1]


def test_a_loss_that_is_no_number_ends_it(tiny_engine: Engine, ids: list[list[int]]) -> None:
    run = TrainingRun(np.full(SIZE, np.nan, dtype=np.float32), tiny_engine.trie(["yes", "no"]), [np.arange(8)])
    with refused("training-diverged", step=1):
        train_side_by_side(tiny_engine, [run], ids, TARGETS, STEPS)
