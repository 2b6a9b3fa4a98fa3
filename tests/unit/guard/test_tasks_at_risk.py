"""Which tasks are looked at where there are too many."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from support.guarded import shaken
from support.published import embedding_of

from onboard.guard.risk import at_risk, drifts, most_at_risk
from onboard.guard.settings import GuardSettings
from onboard.model.engine import Engine
from onboard.model.protected import ProtectedTask


def task(engine: Engine, z: np.ndarray) -> ProtectedTask:
    return ProtectedTask("reviews@v1", z, engine.trie(["good", "bad"]), engine.hypernetwork)


def test_few_tasks_are_all_looked_at(tiny_engine: Engine) -> None:
    tasks = [task(tiny_engine, embedding_of(seed)) for seed in range(5)]
    assert most_at_risk(tasks, shaken(tiny_engine.hypernetwork, 0.1), embedding_of(9), 5) == [0, 1, 2, 3, 4]


def test_of_many_one_half_is_nearest_and_the_other_drifts_most(tiny_engine: Engine) -> None:
    tasks = [task(tiny_engine, embedding_of(seed)) for seed in range(20)]
    tasks[7] = replace(tasks[7], reference=shaken(tiny_engine.hypernetwork, 2.0, 5))
    tasks[13] = replace(tasks[13], reference=shaken(tiny_engine.hypernetwork, 3.0, 6))
    candidate = shaken(tiny_engine.hypernetwork, 0.05)
    near = embedding_of(2) + 0.01
    at_risk = most_at_risk(tasks, candidate, near, 4)
    distances = np.linalg.norm(np.stack([known.z for known in tasks]) - near, axis=1)
    nearest = [place for place in np.argsort(distances).tolist() if place not in (7, 13)][:2]
    assert 2 in at_risk
    assert at_risk == sorted([7, 13, *nearest])


def test_of_the_tasks_that_the_base_came_with_few_are_looked_at_and_of_those_learned_here_as_many_as_there_is_room(
    tiny_engine: Engine,
) -> None:
    tasks = [task(tiny_engine, embedding_of(seed)) for seed in range(20)]
    candidate, near, shipped = (
        shaken(tiny_engine.hypernetwork, 0.05),
        embedding_of(2),
        [seed < 12 for seed in range(20)],
    )

    def looked_at(most: int, sources: int) -> list[int]:
        return at_risk(tasks, shipped, candidate, near, GuardSettings(most_tasks=most, most_sources=sources))

    chosen = looked_at(14, 4)
    assert chosen[-8:] == list(range(12, 20))
    assert (len(chosen), chosen == sorted(chosen), 2 in chosen) == (12, True, True)
    assert len(looked_at(10, 4)) == 10
    assert len(looked_at(8, 4)) == 8
    assert min(looked_at(6, 4)) >= 12


def test_the_drift_is_relative_and_zero_without_a_change(tiny_engine: Engine) -> None:
    tasks = [task(tiny_engine, embedding_of(seed)) for seed in range(11)]
    assert drifts(tasks, tiny_engine.hypernetwork).tolist() == [0.0] * 11
    near, far = (shaken(tiny_engine.hypernetwork, scale) for scale in (0.01, 0.2))
    assert (drifts(tasks, near) < drifts(tasks, far)).all()


def test_the_drift_is_that_of_each_tensor_on_the_average(tiny_engine: Engine) -> None:
    changed, z = shaken(tiny_engine.hypernetwork, 0.2), embedding_of(0)
    with torch.inference_mode():
        before, after = (
            hypernetwork(torch.from_numpy(z)[None]) for hypernetwork in (tiny_engine.hypernetwork, changed)
        )
    expected = [
        float((new - old).square().sum() / old.square().sum())
        for olds, news in zip(before, after, strict=True)
        for old, new in zip(olds, news, strict=True)
    ]
    drift = drifts([task(tiny_engine, z)], changed)
    np.testing.assert_allclose(drift, [np.mean(expected)], rtol=1e-4)
