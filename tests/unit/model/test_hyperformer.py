"""Plain HyperFormer: what a loop over its places makes, in one product per kind."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from onboard.model.engine import Engine
from onboard.model.methods.hyperformer import PlainHyperFormer

SHAPES = {"down": (4, 16), "down_bias": (4,), "up": (16, 4), "up_bias": (16,), "gamma": (16,), "beta": (16,)}
LAYERS = {"encoder": 3, "decoder": 2}


def make(**sizes: int) -> PlainHyperFormer:
    torch.manual_seed(0)
    defaults = {"d_model": 16, "encoder_layers": 3, "decoder_layers": 2, "bottleneck": 4}
    hypernetwork = PlainHyperFormer(
        **{**defaults, "task_embedding_size": 10, "projector_width": 7, "conditioning_size": 6, **sizes}
    )
    with torch.no_grad():
        for parameter in hypernetwork.parameters():
            parameter.normal_(std=0.3)
    return hypernetwork


def test_every_place_of_every_task_is_what_its_own_hypernetwork_makes_of_the_projected_embedding() -> None:
    hypernetwork = make()
    z = torch.randn(3, 10)
    generated = hypernetwork(z)
    assert generated.tasks == 3
    for task in range(3):
        hidden = torch.relu(hypernetwork.projector_in.weight @ z[task] + hypernetwork.projector_in.bias)
        conditioning = hypernetwork.projector_out.weight @ hidden + hypernetwork.projector_out.bias
        for stack, layers in LAYERS.items():
            for kind, shape in SHAPES.items():
                linear = getattr(getattr(hypernetwork, stack), kind)
                rows = torch.Size(shape).numel()
                place = 0
                for layer in range(layers):
                    for position in range(2):
                        own = slice(place * rows, (place + 1) * rows)
                        expected = linear.weight[own] @ conditioning + linear.bias[own]
                        tensor = getattr(getattr(generated, stack), kind)[task, layer, position]
                        torch.testing.assert_close(tensor, expected.view(shape), atol=1e-6, rtol=0)
                        place += 1
                assert place * rows == len(linear.weight)


class _Products(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.count += func.overloadpacket in (torch.ops.aten.addmm, torch.ops.aten.mm, torch.ops.aten.bmm)
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize(("tasks", "layers"), [(1, 1), (5, 4)])
def test_the_number_of_products_depends_neither_on_tasks_nor_on_layers(tasks: int, layers: int) -> None:
    hypernetwork = make(encoder_layers=layers)
    with _Products() as products:
        hypernetwork(torch.randn(tasks, 10))
    assert products.count == 2 + 2 * 6  # one projector, and six kinds of weight per stack


def test_the_projector_is_all_that_the_places_share() -> None:
    hypernetwork = make()
    z = torch.randn(1, 10)
    before = hypernetwork(z)
    rows = 16 * 4
    with torch.no_grad():  # the self-attention of the encoder's layer 1
        hypernetwork.encoder.up.weight[3 * rows : 4 * rows] += 1.0
    after = hypernetwork(z)
    moved = (after.encoder.up - before.encoder.up).flatten(3).abs().sum(-1)[0].gt(0)  # (L, 2)
    assert moved.tolist() == [[False, False], [False, True], [False, False]]
    with torch.no_grad():
        hypernetwork.projector_out.bias += 1.0
    last = hypernetwork(z)
    for old, new in zip([*after.encoder, *after.decoder], [*last.encoder, *last.decoder], strict=True):
        assert (old - new).abs().amin() > 0


def test_parameters_start_as_the_authors_start_them() -> None:
    hypernetwork = PlainHyperFormer(d_model=32, encoder_layers=2, decoder_layers=2, bottleneck=4)
    linears = [module for module in hypernetwork.modules() if isinstance(module, nn.Linear)]
    assert len(linears) == 14
    for linear in linears:
        assert linear.weight.std().item() == pytest.approx(0.01, rel=0.1)
        assert linear.bias.eq(0).all()


@pytest.mark.parametrize("z", [torch.randn(10), torch.randn(2, 9)])
def test_embeddings_of_another_shape_are_refused(z: Tensor) -> None:
    with pytest.raises(ValueError, match=r"\(T, 10\)"):
        make()(z)


def test_the_engine_scores_and_trains_with_it_as_with_any_hypernetwork(backbone_of: Any, text_encoder: Any) -> None:
    backbone = backbone_of("t5")
    hypernetwork = make(d_model=32)
    engine = Engine(backbone, hypernetwork, text_encoder)
    z = torch.randn(2, 10, requires_grad=True)
    ids = engine.encoder.encode([("a b", None), ("c", "d")])
    tries = [engine.trie(["a", "b"]), engine.trie(["c", "d", "e"])]
    scores = engine.log_probabilities(ids, z, tries, torch.tensor([0, 1]))
    assert torch.allclose(scores.exp().sum(-1), torch.ones(2), atol=1e-5)
    scores[:, 0].sum().backward()
    assert z.grad is not None
    assert z.grad.abs().gt(0).all(1).all()
    assert all(parameter.grad is not None for parameter in hypernetwork.parameters())
    alone = engine.log_probabilities(ids[1:], z[1:], tries[1:])
    torch.testing.assert_close(alone[0], scores[1], atol=1e-5, rtol=0)
