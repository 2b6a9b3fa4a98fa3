"""Which task a step trains, which rows, and what is minimised."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import torch
from torch import nn

from onboard.domain.dataset import Example
from onboard.making.curriculum import Source
from onboard.making.multitask.loss import (
    Balance,
    Sampling,
    hypernetwork_scores,
    multitask_loss,
    own_embeddings,
    precision_of,
    task_probabilities,
    turns,
)
from onboard.making.multitask.processes import Processes
from onboard.making.multitask.tasks import EncodedRows, SourceBatches
from onboard.model.engine import Engine

CPU = torch.device("cpu")
ALONE = Processes(0, 1, CPU)


def source(name: str, rows: int, kind: str = "classification") -> Source:
    texts = [f"{row} {'good' if row % 2 else 'bad'} film {'plot ' * (row % 4)}" for row in range(rows)]
    if kind == "regression":
        examples = tuple(Example(text, "film", float(row)) for row, text in enumerate(texts))
        return Source(name, "regression", (), tuple(str(n) for n in range(21)), 0.0, 20.0, examples)
    examples = tuple(Example(text, None, ("no", "yes")[row % 2]) for row, text in enumerate(texts))
    return Source(name, "classification", ("no", "yes"), ("no", "yes"), None, None, examples)


@pytest.fixture
def tasks(tiny_engine: Engine) -> tuple[SourceBatches, ...]:
    made = (source("large", 40), source("small", 10), source("scale", 20, "regression"))
    return tuple(SourceBatches(rows, tiny_engine.encoder, index) for index, rows in enumerate(made))


def test_tasks_are_drawn_by_rows_to_the_power_of_one_over_the_temperature(tasks: tuple[SourceBatches, ...]) -> None:
    probabilities = task_probabilities(((tasks, 1.0),), 10.0)
    assert probabilities.sum() == pytest.approx(1.0)
    assert probabilities[0] / probabilities[1] == pytest.approx(4**0.1)
    assert task_probabilities(((tasks, 1.0),), 1.0).tolist() == pytest.approx([40 / 70, 10 / 70, 20 / 70])
    grouped = task_probabilities(((tasks[:2], 0.6), (tasks[2:], 0.2)), 10.0)
    assert grouped[2] == pytest.approx(0.25)
    drawn, before = turns(probabilities, 3000, 0)
    np.testing.assert_allclose(np.bincount(drawn) / 3000, probabilities, atol=0.03)
    assert all(before[step] == (drawn[:step] == drawn[step]).sum() for step in range(0, 3000, 97))


def test_a_source_has_the_weight_of_its_recipe_and_a_family_no_more_than_its_bound(
    tasks: tuple[SourceBatches, ...],
) -> None:
    groups = ((tasks, 1.0),)
    weighted = task_probabilities(groups, 1.0, Balance({"small": 4.0}))
    assert weighted.tolist() == pytest.approx([40 / 100, 40 / 100, 20 / 100])
    families = {"large": "films", "scale": "films"}
    bounded = task_probabilities(groups, 1.0, Balance({}, families, 0.6))
    assert bounded.tolist() == pytest.approx([0.6 * 2 / 3, 0.4, 0.6 / 3])  # 40 to 20 within the family, as before
    one_each = {"large": "films", "small": "books", "scale": "scales"}
    assert task_probabilities(groups, 1.0, Balance({}, one_each, 0.1)).tolist() == pytest.approx([1 / 3] * 3)
    alone = {task.name: "films" for task in tasks}
    assert task_probabilities(groups, 1.0, Balance({}, alone, 0.1)).tolist() == pytest.approx([4 / 7, 1 / 7, 2 / 7])


@pytest.mark.parametrize("size", [8, 7, 40, 64])
def test_every_row_is_in_one_batch_of_an_epoch(tasks: tuple[SourceBatches, ...], size: int) -> None:
    task = tasks[0]
    batches = -(-40 // size)
    for epoch in range(2):
        drawn = [task.batch(epoch * batches + place, size) for place in range(batches)]
        assert max(len(batch.ids) for batch in drawn) <= size
        counts = Counter(tuple(map(int, ids)) for batch in drawn for ids in batch.ids)
        assert len(counts) == 40
        assert set(counts.values()) == {1}


def test_a_batch_is_of_like_length_and_the_same_for_the_same_turn(tiny_engine: Engine) -> None:
    first, again = (SourceBatches(source("large", 200), tiny_engine.encoder, 3) for _ in range(2))
    spread = [np.ptp([len(ids) for ids in first.batch(turn, 8).ids]) for turn in range(25)]
    whole = np.ptp([len(ids) for turn in range(25) for ids in first.batch(turn, 8).ids])
    assert np.mean(spread) < whole / 2
    for turn in (30, 2, 0):
        one, other = first.batch(turn, 8), again.batch(turn, 8)
        assert [ids.tolist() for ids in map(np.asarray, one.ids)] == [
            ids.tolist() for ids in map(np.asarray, other.ids)
        ]
        np.testing.assert_array_equal(one.targets, other.targets)


def test_rows_are_encoded_as_the_encoder_does(tiny_engine: Engine) -> None:
    rows = [Example("a good film", "the plot", "x"), Example("bad", None, "x")]
    encoded = EncodedRows(rows, tiny_engine.encoder)
    expected = tiny_engine.encoder.encode([("a good film", "the plot"), ("bad", None)])
    assert [np.asarray(ids).tolist() for ids in encoded.take(np.array([1, 0]))] == expected[::-1]


def loss_with(
    engine: Engine,
    tasks: tuple[SourceBatches, ...],
    smoothing: float,
    processes: Processes = ALONE,
    together: int = 1,
):
    embeddings = nn.ParameterList(
        nn.Parameter(torch.randn(1, 16, generator=torch.Generator().manual_seed(index))) for index in range(len(tasks))
    )
    sampling = Sampling(((tasks, 1.0),), 50, 6, 10.0, 4, together)
    scores_of = hypernetwork_scores(engine, own_embeddings(embeddings))
    return embeddings, multitask_loss(scores_of, sampling, torch.float32, processes, smoothing, {"scale"})


def test_the_loss_is_the_cross_entropy_over_the_labels_with_a_share_of_the_target_spread_over_them(
    tiny_engine: Engine, tasks: tuple[SourceBatches, ...]
) -> None:
    embeddings, plain = loss_with(tiny_engine, tasks, 0.0)
    _, smoothed = loss_with(tiny_engine, tasks, 0.2)
    order, before = turns(task_probabilities(((tasks, 1.0),), 10.0), 50, 4)
    seen = set()
    for step in range(12):
        task = tasks[order[step]]
        drawn = task.batch(int(before[step]), 6)
        scores = tiny_engine.log_probabilities(drawn.ids, embeddings[int(order[step])], [drawn.trie])
        targets = torch.from_numpy(drawn.targets)
        own = -(targets * scores).sum(-1).mean()
        even = -scores.mean(-1).mean()
        expected = own if task.name == "scale" else 0.8 * own + 0.2 * even  # a scale's targets are soft already
        torch.testing.assert_close(plain(step).value, own)
        torch.testing.assert_close(smoothed(step).value, expected)
        assert smoothed(step).task == task.name
        assert smoothed(step).rows == len(drawn.ids)
        assert smoothed(step).tokens == sum(map(len, drawn.ids))
        seen.add(task.name)
    assert seen == {"large", "small", "scale"}


def test_several_tasks_in_a_batch_give_the_mean_of_their_losses_and_gradients_from_one_pass(
    tiny_engine: Engine, tasks: tuple[SourceBatches, ...]
) -> None:
    embeddings, mixed = loss_with(tiny_engine, tasks, 0.2, together=3)
    order, before = turns(task_probabilities(((tasks, 1.0),), 10.0), 150, 4)
    passes: list[int] = []
    handle = tiny_engine.backbone.encoder.register_forward_pre_hook(lambda *_: passes.append(1))
    mixtures = set()
    for step in range(8):
        passes.clear()
        embeddings.zero_grad()
        loss = mixed(step)
        loss.value.backward()
        assert len(passes) == 1
        drawn = [(int(order[turn]), int(before[turn])) for turn in range(3 * step, 3 * step + 3)]
        gradients = [None if embedding.grad is None else embedding.grad.clone() for embedding in embeddings]
        embeddings.zero_grad()
        parts, rows = [], 0
        for index, turn in drawn:
            batch = tasks[index].batch(turn, 2)
            scores = tiny_engine.log_probabilities(batch.ids, embeddings[index], [batch.trie])
            targets = torch.from_numpy(batch.targets)
            own, even = -(targets * scores).sum(-1).mean(), -scores.mean(-1).mean()
            parts.append(own if tasks[index].name == "scale" else 0.8 * own + 0.2 * even)
            rows += len(batch.ids)
        expected = torch.stack(parts).mean()
        expected.backward()
        torch.testing.assert_close(loss.value, expected)
        assert (loss.rows, loss.task) == (rows, ", ".join(tasks[index].name for index, _ in drawn))
        for parameter, gradient in zip(embeddings, gradients, strict=True):
            assert (parameter.grad is None) == (gradient is None)
            if gradient is not None:
                assert torch.isfinite(gradient).all()
                torch.testing.assert_close(gradient, parameter.grad, atol=1e-6, rtol=1e-4)
        mixtures.add(frozenset(index for index, _ in drawn))
    handle.remove()
    assert len(mixtures) > 2  # of two labels, of 21, and of both


@pytest.mark.parametrize(("count", "together"), [(2, 1), (3, 1), (8, 1), (2, 3)])
def test_the_shares_of_several_processes_sum_to_the_loss_and_gradient_of_one(
    tiny_engine: Engine, tasks: tuple[SourceBatches, ...], count: int, together: int
) -> None:
    embeddings, whole = loss_with(tiny_engine, tasks, 0.1, together=together)
    for step in range(4):
        loss = whole(step).value
        embeddings.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
        expected = [None if embedding.grad is None else embedding.grad.clone() for embedding in embeddings]
        total = torch.zeros(())
        parts = []
        for rank in range(count):  # with 8 processes and 6 rows two have a row that counts nothing
            own, share_of = loss_with(tiny_engine, tasks, 0.1, Processes(rank, count, CPU), together)
            share = share_of(step).value
            share.backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
            total += share.detach()
            parts.append([embedding.grad for embedding in own])
        torch.testing.assert_close(total, loss.detach())
        for index, gradient in enumerate(expected):
            own_parts = [part[index] for part in parts]
            assert all((part is None) == (gradient is None) for part in own_parts)  # or the all-reduce would not fit
            if gradient is not None:
                torch.testing.assert_close(torch.stack(own_parts).sum(0), gradient)


def test_bf16_is_computed_in_where_it_is_asked_for_or_a_gpu_has_it() -> None:
    assert precision_of("auto", CPU) == torch.float32
    assert precision_of("fp32", CPU) == torch.float32
    assert precision_of("bf16", CPU) == torch.bfloat16
