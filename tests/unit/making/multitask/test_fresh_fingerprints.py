"""Turns under the fingerprint of other rows of a task, as a new task starts, instead of the task's own embedding."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from onboard.domain.dataset import Example
from onboard.making.curriculum import Source
from onboard.making.multitask.hypernetwork import Fingerprinter, fresh_embeddings_of
from onboard.making.multitask.tasks import SourceBatches
from onboard.model.batch import Batch
from onboard.model.engine import Engine

SIZE = 16


class _Turns:
    """Hands out the number of the turn in place of a fingerprint."""

    def fresh(self, task: int, turn: int) -> np.ndarray:
        return np.full(3, 1000.0 * (task + 1) + turn, dtype=np.float32)


def test_a_share_of_the_turns_is_under_a_fingerprint_of_that_step_and_the_embedding_has_no_gradient_then() -> None:
    embeddings = nn.ParameterList(nn.Parameter(torch.full((1, 3), float(task))) for task in range(3))
    taker: Any = _Turns()
    embeddings_of = fresh_embeddings_of(embeddings, taker, 0.3, seed=7)
    fresh, optimiser = np.zeros((400, 2), dtype=bool), torch.optim.AdamW(embeddings.parameters(), lr=0.1)
    for step in range(400):
        before = [embedding.detach().clone() for embedding in embeddings]
        z = embeddings_of([2, 0], step)
        assert z.shape == (2, 3)
        assert torch.equal(embeddings_of([2, 0], step), z)
        optimiser.zero_grad()
        if z.requires_grad:
            z.square().sum().backward()
        optimiser.step()
        for place, task in enumerate((2, 0)):
            fresh[step, place] = float(z[place, 0].detach()) == 1000 * (task + 1) + step + 1
            assert fresh[step, place] or torch.equal(z[place], before[task][0])
            assert (embeddings[task].grad is None) == fresh[step, place]
            assert not fresh[step, place] or torch.equal(embeddings[task], before[task])  # momentum moves it neither
    assert fresh.mean(0).tolist() == pytest.approx([0.3, 0.3], abs=0.06)
    assert (fresh[:, 0] != fresh[:, 1]).any()


@pytest.fixture
def tasks(tiny_engine: Engine) -> list[SourceBatches]:
    made = []
    for name, words in (("films", ("no", "yes")), ("plots", ("bad", "good")), ("moods", ("sad", "happy"))):
        rows = tuple(
            Example(f"{row} {words[row % 2]} {name} {'plot ' * (row % 5)}", None, words[row % 2]) for row in range(90)
        )
        source = Source(name, "classification", words, words, None, None, rows)
        made.append(SourceBatches(source, tiny_engine.encoder, len(made)))
    return made


def test_fresh_fingerprints_are_of_other_rows_at_every_turn_and_on_the_scale_of_the_first(
    tiny_engine: Engine, tasks: list[SourceBatches]
) -> None:
    taker, again = (Fingerprinter(tiny_engine, tasks, SIZE, 3) for _ in range(2))
    assert list(taker.present.of) == ["films", "plots", "moods"]
    for task, first in enumerate(taker.present.of.values()):
        fresh = [taker.fresh(task, turn) for turn in (1, 2, 3)]
        assert len({fingerprint.tobytes() for fingerprint in (first, *fresh)}) == 4
        for turn, taken in enumerate(fresh):
            assert np.linalg.norm(taken) == pytest.approx(SIZE**0.5, rel=1e-5)
            assert again.fresh(task, turn + 1).tobytes() == taken.tobytes()


def test_no_turn_s_fingerprint_is_of_the_batches_of_another_or_of_those_that_are_trained_on(
    tiny_engine: Engine, tasks: list[SourceBatches], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[int, int]] = []
    batch = SourceBatches.batch

    def noted(self: SourceBatches, step: int, size: int) -> Batch:
        asked.append((step, size))
        return batch(self, step, size)

    taker = Fingerprinter(tiny_engine, tasks, SIZE, 3)
    monkeypatch.setattr(SourceBatches, "batch", noted)
    for turn in range(1, 5):
        taker.fresh(0, turn)
    taker.taken_again()
    assert {size for _, size in asked} == {8}
    steps = [step for step, _ in asked[: -4 * (len(tasks) - 1)]]  # the last ones are of the other tasks
    assert len(set(steps)) == len(steps) == 4 * 5
    assert min(steps) >= 10**6  # no stage gets that far


def test_when_they_are_taken_again_the_scale_stays_and_the_present_weights_see_the_same_rows(
    tiny_engine: Engine, tasks: list[SourceBatches]
) -> None:
    taker = Fingerprinter(tiny_engine, tasks, SIZE, 3)
    norm = tiny_engine.backbone.encoder.final_layer_norm.weight
    before = norm.detach().clone()
    same = taker.taken_again()
    with torch.no_grad():
        norm.mul_(torch.linspace(0.5, 2.0, len(norm)))
    try:
        other = taker.taken_again()
    finally:
        with torch.no_grad():
            norm.copy_(before)
    for name, first in taker.present.of.items():
        assert same.of[name].tobytes() == first.tobytes()
        assert not np.allclose(other.of[name], first, atol=1e-2)
    assert other.mean.tobytes() == taker.present.mean.tobytes()
    assert other.deviation.tobytes() == taker.present.deviation.tobytes()
