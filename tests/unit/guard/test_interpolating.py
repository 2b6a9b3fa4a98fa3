"""Between two hypernetworks: the ends bit for bit, nothing touched."""

from __future__ import annotations

import copy

import pytest
import torch
from support.guarded import shaken

from onboard.model.engine import Engine
from onboard.model.interpolate import between
from onboard.model.methods.hyperformer import PlainHyperFormer
from onboard.model.weights import hypernetwork_digest


def test_the_ends_are_the_two_bit_for_bit(tiny_engine: Engine) -> None:
    old, new = copy.deepcopy(tiny_engine.hypernetwork), shaken(tiny_engine.hypernetwork, 0.3)
    with torch.no_grad():
        next(old.parameters()).view(-1)[0] = -0.0  # a sum with zero would lose its sign
    assert hypernetwork_digest(between(old, new, 0.0)) == hypernetwork_digest(old)
    assert hypernetwork_digest(between(old, new, 1.0)) == hypernetwork_digest(new)


def test_a_share_lies_so_far_along_the_way(tiny_engine: Engine) -> None:
    old, new = tiny_engine.hypernetwork, shaken(tiny_engine.hypernetwork, 0.3)
    quarter = dict(between(old, new, 0.25).named_parameters())
    theirs = dict(new.named_parameters())
    for name, weight in old.named_parameters():
        torch.testing.assert_close(quarter[name], 0.75 * weight + 0.25 * theirs[name])


def test_what_comes_is_frozen_and_the_two_stay_as_they_are(tiny_engine: Engine) -> None:
    old, new = copy.deepcopy(tiny_engine.hypernetwork).requires_grad_(True), shaken(tiny_engine.hypernetwork, 0.3)
    digests = hypernetwork_digest(old), hypernetwork_digest(new)
    with torch.inference_mode():
        middle = between(old, new, 0.5)
    assert not any(weight.requires_grad or weight.is_inference() for weight in middle.parameters())
    assert all(weight.requires_grad for weight in old.parameters())
    assert (hypernetwork_digest(old), hypernetwork_digest(new)) == digests


@pytest.mark.parametrize("share", [-0.1, 1.1, float("nan")])
def test_a_share_outside_is_refused(tiny_engine: Engine, share: float) -> None:
    with pytest.raises(ValueError, match="share"):
        between(tiny_engine.hypernetwork, tiny_engine.hypernetwork, share)


def test_hypernetworks_of_different_methods_have_nothing_between_them(tiny_engine: Engine) -> None:
    other = PlainHyperFormer(d_model=16, encoder_layers=2, decoder_layers=2, bottleneck=4)
    with pytest.raises(ValueError, match="between"):
        between(tiny_engine.hypernetwork, other, 0.5)
