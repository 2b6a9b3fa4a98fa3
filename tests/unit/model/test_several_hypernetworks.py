"""One backbone under several hypernetworks, and tasks of all of them in one batch."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from support.published import embedding_of
from support.tuned_heads import perturbed

from bench.harness.generated import generated_digest
from onboard.model.batched import log_probabilities, mixed_log_probabilities
from onboard.model.engine import Engine
from onboard.model.hypernetwork import GeneratedAdapters, Hypernetwork

TEXTS = [("a good film", None), ("bad", None), ("the plot was sad and poor", None), ("great", None)]


def made(hypernetwork: Hypernetwork, *seeds: int) -> GeneratedAdapters:
    with torch.inference_mode():
        return hypernetwork(torch.from_numpy(np.stack([embedding_of(seed) for seed in seeds])))


def test_an_engine_under_another_hypernetwork_shares_the_backbone_and_leaves_the_first_as_it_was(
    tiny_engine: Engine,
) -> None:
    ids, trie, z = tiny_engine.encoder.encode(TEXTS), tiny_engine.trie(["good", "bad"]), embedding_of(1)
    before = log_probabilities(tiny_engine, ids, z, trie)
    moved = perturbed(tiny_engine.hypernetwork, 0.5)
    other = tiny_engine.under(moved)
    assert other.backbone is tiny_engine.backbone
    assert other.hypernetwork is moved
    under = log_probabilities(other, ids, z, trie)
    assert np.abs(np.exp(under) - np.exp(before)).max() > 1e-3
    np.testing.assert_array_equal(log_probabilities(tiny_engine, ids, z, trie), before)
    np.testing.assert_array_equal(log_probabilities(other.under(tiny_engine.hypernetwork), ids, z, trie), before)


def test_tasks_of_different_hypernetworks_answer_in_one_batch_as_each_alone(tiny_engine: Engine) -> None:
    heads = [tiny_engine.hypernetwork, perturbed(tiny_engine.hypernetwork, 0.5, seed=1)]
    parts = [made(heads[0], 1), made(heads[1], 2, 3)]
    joined = GeneratedAdapters.joined(parts, [2, 0, 1])  # seeds 3, 1, 2
    tries = [tiny_engine.trie(words) for words in (["good", "bad"], ["sad", "happy", "great"], ["no", "yes"])]
    tasks = np.array([0, 1, 2, 0])
    ids = tiny_engine.encoder.encode(TEXTS)
    together = mixed_log_probabilities(tiny_engine, ids, joined, tries, tasks)
    for row, task in enumerate(tasks.tolist()):
        seed, head = ((3, heads[1]), (1, heads[0]), (2, heads[1]))[task]
        (alone,) = log_probabilities(tiny_engine.under(head), [ids[row]], embedding_of(seed), tries[task])
        np.testing.assert_allclose(together[row, : len(alone)], alone, atol=1e-5)


def test_joined_weights_are_bit_for_bit_those_of_the_parts_in_the_order_that_was_asked_for(tiny_engine: Engine) -> None:
    parts = [made(tiny_engine.hypernetwork, seed) for seed in (1, 2, 3)]
    joined = GeneratedAdapters.joined(parts)
    assert joined.tasks == 3
    for place, part in enumerate(parts):
        assert generated_digest(GeneratedAdapters.joined([joined], [place])) == generated_digest(part)
    again = GeneratedAdapters.joined(parts, [1, 1])
    assert generated_digest(again) == generated_digest(GeneratedAdapters.joined([parts[1], parts[1]]))
    assert generated_digest(GeneratedAdapters.joined(parts[:1])) == generated_digest(parts[0])


def test_gradients_reach_every_hypernetwork_of_a_joined_batch(tiny_engine: Engine) -> None:
    heads = [perturbed(tiny_engine.hypernetwork, seed=seed).requires_grad_(True) for seed in (1, 2)]
    z = torch.from_numpy(embedding_of(1))[None]
    joined = GeneratedAdapters.joined([head(z) for head in heads], [1, 0])
    joined.encoder.down[0].sum().backward()
    gradients = [head.encoder.down.weight.grad for head in heads]
    assert gradients[1] is not None
    assert gradients[1].abs().sum() > 0
    assert gradients[0] is None or gradients[0].abs().sum() == 0


def test_nothing_cannot_be_joined() -> None:
    with pytest.raises(ValueError, match="no adapters"):
        GeneratedAdapters.joined([])
