"""The engine: what the stages call."""

from __future__ import annotations

import copy
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from onboard.errors import ConflictError
from onboard.model.backbone import norm_parameters
from onboard.model.encoding import TextEncoder, pad
from onboard.model.engine import Engine

Engines = Callable[[str], Engine]
TEXTS = [("a b c d", None), ("w1 w2", "w3"), ("w7", None)]


def test_rows_of_different_tasks_score_as_in_a_batch_of_their_own(engine_of: Engines, family: str) -> None:
    engine = engine_of(family)
    ids = engine.encoder.encode(TEXTS)
    tries = [engine.trie(["a", "b"]), engine.trie(["w1 w2", "w1 w3", "c"])]
    z, rows = torch.randn(2, 12), torch.tensor([1, 0, 1])
    with torch.no_grad():
        mixed = engine.log_probabilities(ids, z, tries, rows)
        for row, task in enumerate(rows.tolist()):
            own = engine.log_probabilities(ids, z[task : task + 1], [tries[task]])
            torch.testing.assert_close(mixed[row, : own.shape[1]], own[row], atol=1e-5, rtol=0)
    assert mixed.shape == (3, 3)
    assert mixed.dtype == torch.float32
    assert mixed[1, 2] == -torch.inf


def state(engine: Engine) -> dict[str, Tensor]:
    tensors = {**engine.backbone.state_dict(prefix="backbone."), **engine.hypernetwork.state_dict(prefix="hyper.")}
    return {name: value.clone() for name, value in tensors.items()}


def test_one_training_step_of_z_changes_nothing_else_bit_for_bit(engine_of: Engines, family: str) -> None:
    engine = engine_of(family)
    engine.hypernetwork.requires_grad_(False)
    ids, trie = engine.encoder.encode(TEXTS), engine.trie(["a", "b c"])
    z = torch.randn(1, 12, requires_grad=True)
    before, old = state(engine), z.detach().clone()
    optimiser = torch.optim.AdamW([z], lr=0.1)
    scores = engine.log_probabilities(ids, z, [trie])
    torch.nn.functional.nll_loss(scores, torch.tensor([0, 1, 1])).backward()
    assert all(p.grad is None for p in [*engine.backbone.parameters(), *engine.hypernetwork.parameters()])
    optimiser.step()
    after = state(engine)
    assert after.keys() == before.keys()
    assert all(torch.equal(after[name], before[name]) for name in before)
    assert z.detach().ne(old).all()


def test_training_z_lowers_the_loss_to_the_labels(engine: Engine) -> None:
    engine.hypernetwork.requires_grad_(False)
    ids, trie = engine.encoder.encode(TEXTS), engine.trie(["a", "b"])
    torch.manual_seed(0)
    z = torch.randn(1, 12, requires_grad=True)
    optimiser = torch.optim.Adam([z], lr=0.05)
    losses = []
    for _ in range(15):
        optimiser.zero_grad()
        loss = torch.nn.functional.nll_loss(engine.log_probabilities(ids, z, [trie]), torch.tensor([0, 0, 0]))
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0] - 0.1


def test_training_a_base_reaches_hypernetwork_and_norms_and_nothing_frozen(engine: Engine) -> None:
    for parameter in norm_parameters(engine.backbone):
        parameter.requires_grad_(True)
    z = torch.randn(2, 12, requires_grad=True)
    tries = [engine.trie(["a", "b"]), engine.trie(["c a", "c b"])]
    scores = engine.log_probabilities(engine.encoder.encode(TEXTS), z, tries, torch.tensor([0, 1, 0]))
    scores[:, 0].sum().backward()
    assert all(p.grad is not None for p in engine.hypernetwork.parameters())
    assert all(p.grad is not None for p in norm_parameters(engine.backbone))
    reached = {p for p in engine.backbone.parameters() if p.grad is not None}
    assert reached == set(norm_parameters(engine.backbone))


def test_tries_packed_under_inference_mode_serve_training_afterwards(engine: Engine) -> None:
    ids, trie, z = engine.encoder.encode(TEXTS), engine.trie(["a b", "a c", "d"]), torch.randn(1, 12)
    with torch.inference_mode():
        before = engine.log_probabilities(ids, z, [trie])
    leaf = z.clone().requires_grad_(True)
    after = engine.log_probabilities(ids, leaf, [trie])
    after.sum().backward()
    assert torch.equal(before, after)
    assert leaf.grad is not None


def test_another_hypernetwork_serves_one_call(engine: Engine, hypernetwork_for: Callable[..., torch.nn.Module]) -> None:
    ids, trie, z = engine.encoder.encode(TEXTS), engine.trie(["a", "b"]), torch.randn(1, 12)
    other = hypernetwork_for(engine.backbone, seed=9)
    with torch.no_grad():
        own = engine.log_probabilities(ids, z, [trie])
        swapped = engine.log_probabilities(ids, z, [trie], hypernetwork=other)
        again = engine.log_probabilities(ids, z, [trie])
    assert not torch.allclose(own, swapped)
    assert torch.equal(own, again)


def test_adapters_generated_before_give_the_same_scores(engine: Engine) -> None:
    ids, trie, z = engine.encoder.encode(TEXTS), engine.trie(["a", "b"]), torch.randn(1, 12)
    with torch.no_grad():
        generated = engine.hypernetwork(z)
        assert torch.equal(engine.score(ids, generated, [trie]), engine.log_probabilities(ids, z, [trie]))


def test_features_are_the_mean_of_the_bare_encoder_over_a_texts_own_tokens(engine: Engine) -> None:
    ids = engine.encoder.encode(TEXTS)
    with torch.no_grad():
        features = engine.encode_features(ids)
        for row, own in enumerate(ids):
            alone = engine.backbone.encoder(input_ids=torch.tensor([own])).last_hidden_state[0].mean(0)
            torch.testing.assert_close(features[row], alone, atol=1e-5, rtol=0)
            torch.testing.assert_close(engine.encode_features([own])[0], alone, atol=1e-5, rtol=0)
        with engine.attachment.using(engine.hypernetwork(torch.randn(1, 12))):
            assert torch.equal(engine.encode_features(ids), features)


def test_the_engine_freezes_the_backbone_and_owns_its_adapters(engine: Engine, text_encoder: TextEncoder) -> None:
    assert not engine.backbone.training
    assert not any(p.requires_grad for p in engine.backbone.parameters())
    with pytest.raises(ConflictError):
        Engine(engine.backbone, engine.hypernetwork, text_encoder)


def test_tasks_tries_and_rows_must_fit(engine: Engine) -> None:
    ids, trie = engine.encoder.encode(TEXTS), engine.trie(["a", "b"])
    with pytest.raises(ValueError, match="label tries"):
        engine.log_probabilities(ids, torch.randn(2, 12), [trie], torch.tensor([0, 1, 0]))
    with pytest.raises(ValueError, match="needs its task"):
        engine.log_probabilities(ids, torch.randn(2, 12), [trie, trie])
    with pytest.raises(ValueError, match="needs its task"):
        engine.log_probabilities(ids, torch.randn(2, 12), [trie, trie], torch.tensor([0, 1]))


@pytest.mark.parametrize("how", ["autocast", "bfloat16 backbone"])
def test_scores_in_bfloat16_are_near_those_in_float32(engine_of: Engines, how: str) -> None:
    engine, full = engine_of("t5"), engine_of("t5")
    ids = engine.encoder.encode(TEXTS)
    tries = [engine.trie(["a b", "a c", "d"]), engine.trie(["a", "b"])]
    z, rows = torch.randn(2, 12), torch.tensor([0, 1, 0])
    leaf = z.clone().requires_grad_(True)
    if how == "bfloat16 backbone":
        engine.backbone.to(torch.bfloat16)
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=how == "autocast"):
        half = engine.log_probabilities(ids, leaf, tries, rows)
        single = engine.log_probabilities(ids, leaf[:1], tries[:1])
    (half[:, 0].sum() + single.sum()).backward()
    assert half.dtype == torch.float32
    assert leaf.grad is not None
    assert leaf.grad.isfinite().all()
    with torch.no_grad():
        exact = full.log_probabilities(ids, z, tries, rows)
    known = exact.isfinite()
    torch.testing.assert_close(half[known], exact[known], atol=0.1, rtol=0.1)


def test_padding_does_not_change_a_rows_scores(engine: Engine) -> None:
    ids, trie, z = engine.encoder.encode(TEXTS), engine.trie(["a", "b"]), torch.randn(1, 12)
    with torch.no_grad():
        together = engine.log_probabilities(ids, z, [trie])
        apart = torch.cat([engine.log_probabilities([row], z, [trie]) for row in ids])
    torch.testing.assert_close(together, apart, atol=1e-5, rtol=0)
    assert pad(ids, 0)[1].min() == 0


def test_two_engines_on_equal_backbones_agree_bit_for_bit(engine_of: Engines) -> None:
    engine, other = engine_of("v1.1"), engine_of("v1.1")
    ids, z = engine.encoder.encode(TEXTS), torch.randn(1, 12)
    with torch.no_grad():
        first = engine.log_probabilities(ids, z, [engine.trie(["a", "b"])])
        second = other.log_probabilities(ids, copy.deepcopy(z), [other.trie(["a", "b"])])
    assert torch.equal(first, second)
