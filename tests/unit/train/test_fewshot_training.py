"""Few-shot training: only z moves, and twice the same."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from support.published import embedding_of
from support.refusals import refused

from bench.harness.as_a_job import train_embedding
from onboard.errors import CancelledError
from onboard.model.batch import LabelledRows, TrainingSet
from onboard.model.engine import Engine
from onboard.model.execution import Execution
from onboard.model.scoring import LabelTrie
from onboard.model.side_by_side import Moved, Padding, TrainingRun
from onboard.model.steps import Steps
from onboard.train import fewshot
from onboard.train.fewshot import Part, batches, train_parts
from onboard.train.settings import FewShotSettings

SIZE = 16
SHORT = FewShotSettings(steps=6, batch=4, seeds=1)


@pytest.fixture
def start() -> np.ndarray:
    return embedding_of(0)


def state(engine: Engine) -> dict[str, bytes]:
    tensors = {**engine.backbone.state_dict(prefix="backbone."), **engine.hypernetwork.state_dict(prefix="hyper.")}
    return {name: value.detach().numpy().tobytes() for name, value in tensors.items()}


def test_the_same_seed_gives_the_same_bytes_and_another_seed_other_ones(
    tiny_engine: Engine, rows: LabelledRows, trie: LabelTrie, start: np.ndarray
) -> None:
    first, again, other = (train_embedding(tiny_engine, start, rows, trie, SHORT, seed) for seed in (3, 3, 4))
    assert first.z.tobytes() == again.z.tobytes()
    assert first.to_document() == again.to_document()
    assert first.z.tobytes() != other.z.tobytes()
    assert first.z.dtype == np.float32
    assert first.z.shape == (SIZE,)


def test_nothing_but_z_moves_bit_for_bit(
    tiny_engine: Engine, rows: LabelledRows, trie: LabelTrie, start: np.ndarray
) -> None:
    before, began = state(tiny_engine), start.copy()
    trained = train_embedding(tiny_engine, start, rows, trie, SHORT, 0)
    assert state(tiny_engine) == before
    parameters = [*tiny_engine.backbone.parameters(), *tiny_engine.hypernetwork.parameters()]
    assert all(parameter.grad is None for parameter in parameters)
    np.testing.assert_array_equal(start, began)
    assert (trained.z != start).all()


def test_the_training_lowers_the_loss(
    tiny_engine: Engine, rows: LabelledRows, trie: LabelTrie, start: np.ndarray
) -> None:
    trained = train_embedding(tiny_engine, start, rows, trie, FewShotSettings(steps=25, batch=8), 0)
    assert trained.losses[-1] < trained.losses[0] - 0.01
    assert len(trained.losses) == len(trained.norms) == 25


def test_z_stays_within_its_bound(tiny_engine: Engine, rows: LabelledRows, trie: LabelTrie, start: np.ndarray) -> None:
    bound = 0.5
    settings_ = FewShotSettings(steps=6, batch=4, learning_rate=1.0, norm_per_root=bound)
    trained = train_embedding(tiny_engine, 10 * start, rows, trie, settings_, 0)
    limit = bound * SIZE**0.5
    assert max(trained.norms) <= limit * (1 + 1e-5)
    assert trained.norms[0] == pytest.approx(limit, rel=1e-5)
    assert float(np.linalg.norm(trained.z)) <= limit * (1 + 1e-5)


def test_the_result_is_the_mean_of_the_last_quarter_of_the_steps(
    tiny_engine: Engine, rows: LabelledRows, trie: LabelTrie, start: np.ndarray
) -> None:
    order = batches([len(ids) for ids in rows.ids], 8, 4, 0)
    (trained,) = fewshot.train_side_by_side(
        tiny_engine, [TrainingRun(start, trie, order)], rows.ids, rows.targets, Steps(0.1)
    )
    np.testing.assert_allclose(trained.z, (trained.course[6] + trained.course[7]) / 2, atol=1e-6)
    assert np.abs(trained.course[6] - trained.course[7]).max() > 1e-3


@settings(max_examples=80, deadline=None)
@given(st.lists(st.integers(1, 60), min_size=1, max_size=90), st.integers(1, 40), st.integers(0, 9))
def test_every_epoch_covers_every_row_once(lengths: list[int], batch: int, seed: int) -> None:
    size = min(batch, len(lengths))
    per_epoch = max(1, len(lengths) // size)
    order = batches(lengths, 3 * per_epoch, batch, seed)
    assert len(order) == 3 * per_epoch
    for epoch in range(3):
        rows = np.concatenate(order[epoch * per_epoch : (epoch + 1) * per_epoch])
        assert sorted(rows.tolist()) == list(range(len(lengths)))
    assert all(size <= len(rows_of_step) < 2 * size for rows_of_step in order)


def test_there_are_as_many_batches_as_steps_and_they_depend_on_the_seed_alone() -> None:
    lengths = list(range(1, 31))
    first, again, other = (batches(lengths, 11, 8, seed) for seed in (1, 1, 2))
    assert len(first) == 11
    assert all(np.array_equal(one, same) for one, same in zip(first, again, strict=True))
    assert not all(np.array_equal(one, another) for one, another in zip(first, other, strict=True))
    assert any(not np.array_equal(one, next_) for one, next_ in pairwise(first))


@pytest.mark.parametrize(
    ("rows", "batch", "steps"),
    [(4, 2, 80), (80, 2, 80), (81, 3, 80), (320, 8, 80), (321, 8, 81), (1500, 8, 375), (90_000, 8, 400)],
)
def test_many_rows_are_seen_twice_in_larger_batches_then_in_more_steps_up_to_a_cap(
    rows: int, batch: int, steps: int
) -> None:
    settings_ = FewShotSettings().for_rows(rows)
    assert (settings_.batch, settings_.steps) == (batch, steps)
    assert settings_.for_rows(rows) == settings_
    given = FewShotSettings(steps=7, batch=9)
    assert given.for_rows(4) == given


def test_the_rate_falls_to_nothing(
    tiny_engine: Engine, rows: LabelledRows, trie: LabelTrie, start: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    rates: list[float] = []
    step = torch.optim.Adam.step
    monkeypatch.setattr(torch.optim.Adam, "step", lambda own: rates.append(own.param_groups[0]["lr"]) or step(own))
    train_embedding(tiny_engine, start, rows, trie, FewShotSettings(steps=4, learning_rate=0.2), 0)
    assert rates == pytest.approx([0.2, 0.15, 0.1, 0.05])


def test_a_part_of_the_rows_is_trained_on_in_batches_as_much_smaller(
    tiny_engine: Engine, rows: LabelledRows, trie: LabelTrie, start: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[set[int]] = []
    spied = fewshot.train_side_by_side

    def spy(engine: Engine, runs: Sequence[TrainingRun], *more: Any) -> list[Moved]:
        sizes.extend({len(batch) for batch in run.batches} for run in runs)
        return spied(engine, runs, *more)

    monkeypatch.setattr(fewshot, "train_side_by_side", spy)
    count = len(rows.ids)
    parts = [Part(np.arange(count), 2), Part(np.arange(count // 2), 1)]
    whole, half = train_parts(tiny_engine, TrainingSet(rows, trie), start, FewShotSettings(steps=4, batch=4), 0, parts)
    assert sizes == [{4}, {4}, {2}]
    assert len(whole.losses) == len(half.losses) == 4


def test_batches_may_hold_one_row_and_a_half_so_that_each_row_of_a_fold_is_seen_as_often() -> None:
    order = batches([7] * 24, 32, 1.5, 0)
    assert {len(rows_of_step) for rows_of_step in order} == {1, 2}
    assert np.bincount(np.concatenate(order)).tolist() == [2] * 24
    assert {len(rows_of_step) for rows_of_step in batches([7] * 6, 9, 0.5, 0)} == {1}


def test_of_the_way_from_the_start_a_share_may_be_taken(
    tiny_engine: Engine, rows: LabelledRows, trie: LabelTrie, start: np.ndarray
) -> None:
    trained = train_embedding(tiny_engine, start, rows, trie, FewShotSettings(steps=4, batch=4), 0)
    np.testing.assert_allclose(trained.shortened(start, 0.25).z, 0.75 * start + 0.25 * trained.z, atol=1e-6)
    assert trained.shortened(start, 1.0) == trained
    assert trained.shortened(start, 0.25).losses == trained.losses


def test_batches_of_like_length_waste_less_padding_than_batches_at_random() -> None:
    lengths = np.random.default_rng(0).integers(3, 100, 256)
    assert _share(lengths, batches(lengths.tolist(), 8, 32, 0)) < 0.25
    shuffled = np.array_split(np.random.default_rng(1).permutation(256), 8)
    assert _share(lengths, shuffled) > 0.4


def _share(lengths: np.ndarray, drawn: Sequence[np.ndarray]) -> float:
    padding = Padding()
    for chosen in drawn:
        padding.count(lengths[chosen].tolist())
    return padding.share


def test_the_padding_share_counts_the_positions_that_were_computed_in_vain(
    tiny_engine: Engine, trie: LabelTrie, start: np.ndarray
) -> None:
    padding = Padding()
    assert padding.share == 0.0
    padding.count([4, 2])
    padding.count([2])
    assert padding.share == pytest.approx(2 / 10)
    rows = LabelledRows([[5, 6, 1], [7, 1]], np.eye(2, dtype=np.float32))
    trained = train_embedding(tiny_engine, start, rows, trie, FewShotSettings(steps=2, batch=2, seeds=3), 0)
    assert trained.padding_share == 0.0  # three orders of both rows, in a part of the short and one of the long
    assert trained.to_document().padding_share == trained.padding_share


def test_a_loss_that_is_no_number_fails_the_job_at_once(
    tiny_engine: Engine, rows: LabelledRows, trie: LabelTrie, start: np.ndarray
) -> None:
    steps: list[int] = []
    broken = np.full_like(start, np.nan)
    with refused("training-diverged", step=1) as caught:
        train_embedding(tiny_engine, broken, rows, trie, SHORT, 0, Execution(lambda step, loss: steps.append(step)))
    assert steps == []
    assert caught.value.remedy


def test_the_training_tells_every_step_and_can_be_stopped_at_any(
    tiny_engine: Engine, rows: LabelledRows, trie: LabelTrie, start: np.ndarray
) -> None:
    steps: list[tuple[int, float]] = []

    def stop_at_the_third(step: int, loss: float) -> None:
        steps.append((step, loss))
        if step == 3:
            raise CancelledError("The job was cancelled.")

    with pytest.raises(CancelledError):
        train_embedding(tiny_engine, start, rows, trie, SHORT, 0, Execution(stop_at_the_third))
    whole = train_embedding(tiny_engine, start, rows, trie, SHORT, 0)
    assert steps == [(step, whole.losses[step - 1]) for step in (1, 2, 3)]


def test_soft_targets_of_a_scale_train_too(tiny_engine: Engine, rows: LabelledRows, start: np.ndarray) -> None:
    targets = np.tile(np.array([0.25, 0.75, 0.0], dtype=np.float32), (8, 1))
    trie = tiny_engine.trie(["0", "1", "2"])
    trained = train_embedding(tiny_engine, start, LabelledRows(rows.ids, targets), trie, SHORT, 0)
    assert np.isfinite(trained.losses).all()
    assert trained.losses[-1] >= 0.25 * np.log(4) + 0.75 * np.log(4 / 3) - 1e-6  # the entropy of the target
