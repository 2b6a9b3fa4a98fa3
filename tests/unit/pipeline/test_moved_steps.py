"""A tuning step on a head that moved: the same difference of weights, from the new head."""

from __future__ import annotations

import torch
from support.tuned_heads import perturbed

from onboard.model.engine import Engine
from onboard.model.weights import hypernetwork_digest
from onboard.pipeline.moved_head import _moved


def test_a_moved_step_is_the_new_head_and_the_difference_from_the_old_one(tiny_engine: Engine) -> None:
    old = tiny_engine.hypernetwork
    tuned, new = perturbed(old, 0.05, seed=1), perturbed(old, 0.05, seed=2)
    before = [hypernetwork_digest(hypernetwork) for hypernetwork in (old, tuned, new)]
    moved = _moved(tuned, old, new)
    differs = []
    weights = (hypernetwork.state_dict() for hypernetwork in (old, tuned, new, moved))
    for place in zip(*(each.values() for each in weights), strict=True):
        first, stepped, head, there = (weight.double() for weight in place)
        assert torch.allclose(there, head + stepped - first, rtol=0, atol=1e-6)
        differs.append(not torch.allclose(there, stepped, rtol=0, atol=1e-6))
    assert sum(differs) > len(differs) / 2  # weights of zero are not perturbed
    assert not any(weight.requires_grad for weight in moved.parameters())
    assert [hypernetwork_digest(hypernetwork) for hypernetwork in (old, tuned, new)] == before


def test_a_step_from_a_head_that_did_not_change_is_the_tuned_hypernetwork(tiny_engine: Engine) -> None:
    old = tiny_engine.hypernetwork
    tuned = perturbed(old, 0.05, seed=1)
    for there, stepped in zip(_moved(tuned, old, old).parameters(), tuned.parameters(), strict=True):
        assert torch.allclose(there, stepped, rtol=0, atol=1e-6)
