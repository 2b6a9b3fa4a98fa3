"""Adapters of a task's own that start at what a hypernetwork makes of an embedding answer what that embedding does."""

from __future__ import annotations

import numpy as np
import torch
from support.refusals import refused

from onboard.model.batched import log_probabilities
from onboard.model.engine import Engine
from onboard.model.methods.adapters_dagger import AdaptersDagger

TEXTS = [("a good film", None), ("bad plot", None), ("it is sad and awful", None)]


def test_they_answer_as_the_embedding_until_they_are_trained(tiny_engine: Engine) -> None:
    z = np.random.default_rng(0).standard_normal(16).astype(np.float32)
    ids, trie = tiny_engine.encoder.encode(TEXTS), tiny_engine.trie(["good", "bad"])
    adapters = tiny_engine.hypernetwork(torch.from_numpy(z)[None])
    module = AdaptersDagger(tiny_engine.backbone, reduction_factor=4)
    own = log_probabilities(tiny_engine, ids, module.weights(), trie)
    started = log_probabilities(tiny_engine, ids, module.start_at(adapters).weights(), trie)
    expected = log_probabilities(tiny_engine, ids, z, trie)
    np.testing.assert_allclose(started, expected, atol=1e-5)
    assert np.abs(own - expected).max() > 1e-3
    assert all(parameter.requires_grad for parameter in module.parameters())


def test_another_bottleneck_is_refused_with_the_one_that_fits(tiny_engine: Engine) -> None:
    adapters = tiny_engine.hypernetwork(torch.zeros(1, 16))
    with refused("reduction-factor-differs"):
        AdaptersDagger(tiny_engine.backbone, reduction_factor=2).start_at(adapters)
