"""Products in bfloat16: near enough to train with, only where asked for, and nothing of the backbone changes."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from torch import Tensor

from onboard.model import engine as engines
from onboard.model.engine import Engine
from onboard.model.rounding import has_bfloat16

Engines = Callable[[str], Engine]
TEXTS = [("a b c d", None), ("w1 w2", "w3"), ("w7", None)]


@pytest.fixture
def _bfloat16(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a CPU that has the instructions; one without computes the same, slowly."""
    monkeypatch.setattr(engines, "has_bfloat16", lambda: True)


def scores_and_gradient(engine: Engine, z: Tensor) -> tuple[Tensor, Tensor]:
    leaf = z.clone().requires_grad_(True)
    trie = engine.trie(["a", "b c"])
    scores = engine.log_probabilities(engine.encoder.encode(TEXTS), leaf, [trie])
    (gradient,) = torch.autograd.grad(scores[:, 0].sum(), leaf)
    return scores.detach(), gradient


@pytest.mark.usefixtures("_bfloat16")
def test_rounded_products_are_near_the_exact_ones_forward_and_back(engine_of: Engines, family: str) -> None:
    engine, z = engine_of(family), torch.randn(1, 12)
    exact, slope = scores_and_gradient(engine, z)
    rounded, moved = scores_and_gradient(engine.rounded(), z)
    assert rounded.dtype == moved.dtype == torch.float32
    assert not torch.equal(rounded, exact)
    torch.testing.assert_close(rounded, exact, atol=0.1, rtol=0)
    assert torch.cosine_similarity(moved.flatten(), slope.flatten(), 0) > 0.99


@pytest.mark.usefixtures("_bfloat16")
def test_the_engine_itself_stays_exact_and_its_weights_what_they_were(engine: Engine) -> None:
    z, before = torch.randn(1, 12), {name: weight.clone() for name, weight in engine.backbone.state_dict().items()}
    exact, _ = scores_and_gradient(engine, z)
    rounded = engine.rounded()
    scores_and_gradient(rounded, z)
    again, _ = scores_and_gradient(engine, z)
    assert torch.equal(again, exact)
    assert all(torch.equal(weight, before[name]) for name, weight in engine.backbone.state_dict().items())
    assert rounded.rounded() is rounded
    assert rounded.backbone is engine.backbone


@pytest.mark.usefixtures("_bfloat16")
def test_a_rounded_engine_under_another_hypernetwork_stays_rounded(engine: Engine) -> None:
    z = torch.randn(1, 12)
    rounded, _ = scores_and_gradient(engine.rounded(), z)
    under, _ = scores_and_gradient(engine.rounded().under(engine.hypernetwork), z)
    assert torch.equal(under, rounded)


@pytest.mark.usefixtures("_bfloat16")
def test_another_thread_computes_exactly_meanwhile(engine: Engine) -> None:
    def in_another_thread() -> Tensor:  # with as many cores each time, whatever this one was given by other tests
        with ThreadPoolExecutor(1) as another:
            return another.submit(scores_and_gradient, engine, z).result()[0]

    z = torch.randn(1, 12)
    exact = in_another_thread()
    with engine.rounded()._products():
        assert torch.equal(in_another_thread(), exact)


def test_without_the_instructions_nothing_is_rounded(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "has_bfloat16", lambda: False)
    assert engine.rounded() is engine


def test_a_cpu_is_asked_for_its_instructions(monkeypatch: pytest.MonkeyPatch) -> None:
    for capabilities, expected in (({"avx512_bf16": True}, True), ({"amx_bf16": True}, True), ({"avx2": True}, False)):
        has_bfloat16.cache_clear()
        monkeypatch.setattr(torch.cpu, "get_capabilities", lambda capabilities=capabilities: capabilities)
        assert has_bfloat16() is expected
    has_bfloat16.cache_clear()
