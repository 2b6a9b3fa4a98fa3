"""The hypernetwork: shapes, the batched product, initialisation."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from onboard.model.hypernetwork import Hypernetwork
from onboard.model.initialisation import scale_projectors
from onboard.model.methods.hyperformer import PlainHyperFormer
from onboard.model.methods.hyperformer_plus_plus import HyperFormerPlusPlus, StackHypernetwork
from onboard.model.methods.open_start import open_to_embeddings


def make(**sizes: int) -> Hypernetwork:
    torch.manual_seed(0)
    return HyperFormerPlusPlus(
        **{"d_model": 16, "encoder_layers": 3, "decoder_layers": 2, "bottleneck": 4, "task_embedding_size": 8, **sizes}
    )


def test_shapes_are_tasks_layers_positions_and_then_the_adapter() -> None:
    generated = make()(torch.randn(5, 8))
    assert generated.tasks == 5
    for weights, layers in ((generated.encoder, 3), (generated.decoder, 2)):
        assert weights.down.shape == (5, layers, 2, 4, 16)
        assert weights.down_bias.shape == (5, layers, 2, 4)
        assert weights.up.shape == (5, layers, 2, 16, 4)
        for name in ("up_bias", "gamma", "beta"):
            assert getattr(weights, name).shape == (5, layers, 2, 16)


def test_each_adapter_is_the_linear_image_of_its_own_conditioning() -> None:
    hypernetwork = make(conditioning_size=6, projector_width=10)
    z = torch.randn(2, 8)
    stack, weights = hypernetwork.decoder, hypernetwork(z).decoder
    for task, layer, position in ((0, 0, 0), (1, 0, 1), (0, 1, 1), (1, 1, 0)):
        joined = torch.cat([z[task], stack.layer_embeddings[layer], stack.position_embeddings[position]])
        projected = stack.projector_out(torch.relu(stack.projector_in(joined)))
        conditioning = nn.functional.layer_norm(projected, (6,), stack.norm.weight, stack.norm.bias, 1e-6)
        torch.testing.assert_close(weights.down[task, layer, position], stack.down(conditioning).view(4, 16))
        torch.testing.assert_close(weights.up[task, layer, position], stack.up(conditioning).view(16, 4))
        torch.testing.assert_close(weights.gamma[task, layer, position], stack.gamma(conditioning))


class CountedProducts(TorchDispatchMode):
    """Counts matrix products."""

    count = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.count += func.name() in {"aten::addmm", "aten::mm", "aten::bmm", "aten::matmul", "aten::linear"}
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize(("layers", "tasks"), [(1, 1), (12, 1), (12, 8)])
def test_the_number_of_products_depends_on_neither_layers_nor_tasks(layers: int, tasks: int) -> None:
    hypernetwork = make(encoder_layers=layers, decoder_layers=layers)
    with torch.no_grad(), CountedProducts() as products:
        hypernetwork(torch.randn(tasks, 8))
    assert products.count == 2 * 8  # two of the projector and six kinds of weight, per stack


def test_the_stacks_share_nothing_but_the_task_embedding() -> None:
    hypernetwork = make(decoder_layers=3)
    z = torch.randn(1, 8)
    before = hypernetwork(z).decoder
    with torch.no_grad():
        for parameter in hypernetwork.encoder.parameters():
            parameter.add_(1.0)
    for old, new in zip(before, hypernetwork(z).decoder, strict=True):
        assert torch.equal(old, new)


def test_parameters_start_as_the_authors_start_them() -> None:
    hypernetwork = make(d_model=64, encoder_layers=40, task_embedding_size=64)
    for stack in (hypernetwork.encoder, hypernetwork.decoder):
        for linear in (m for m in stack.modules() if isinstance(m, nn.Linear)):
            assert linear.weight.std().item() == pytest.approx(0.01, rel=0.2)
            assert linear.bias.eq(0).all()
        assert stack.norm.weight.eq(1).all()
        assert stack.norm.bias.eq(0).all()
    assert hypernetwork.encoder.layer_embeddings.std().item() == pytest.approx(1.0, rel=0.1)
    assert hypernetwork.encoder.position_embeddings.std().item() == pytest.approx(1.0, rel=0.3)


@pytest.mark.parametrize("z", [torch.randn(8), torch.randn(2, 7), torch.randn(1, 2, 8)])
def test_embeddings_of_another_shape_are_refused(z: Tensor) -> None:
    with pytest.raises(ValueError, match=r"\(T, 8\)"):
        make()(z)


@pytest.mark.parametrize("kind", [HyperFormerPlusPlus, PlainHyperFormer])
def test_scaled_projectors_keep_unit_inputs_at_unit_size_and_leave_all_else(kind: type[Hypernetwork]) -> None:
    torch.manual_seed(0)
    hypernetwork = kind(d_model=16, encoder_layers=2, decoder_layers=1, bottleneck=4, projector_width=256)
    before = {name: value.clone() for name, value in hypernetwork.state_dict().items()}
    scale_projectors(hypernetwork)
    modules = dict(hypernetwork.named_modules())
    for name in (module.rpartition(".")[0] for module in modules if module.endswith("projector_in")):
        first, last = (modules[f"{name}.{part}".lstrip(".")] for part in ("projector_in", "projector_out"))
        out = last(torch.relu(first(torch.randn(4096, first.in_features))))
        assert out.detach().square().mean().item() == pytest.approx(1.0, rel=0.3)
    changed = {name for name, value in hypernetwork.state_dict().items() if not torch.equal(value, before[name])}
    assert changed == {name for name in before if "projector" in name and name.endswith("weight")}


def opened(**sizes: int) -> Hypernetwork:
    torch.manual_seed(0)
    given = {"d_model": 16, "encoder_layers": 2, "decoder_layers": 1, "bottleneck": 4, "projector_width": 128, **sizes}
    hypernetwork = HyperFormerPlusPlus(**given)
    open_to_embeddings(hypernetwork)
    return hypernetwork.requires_grad_(False)


@pytest.mark.parametrize("conditioning_size", [48, 64])
def test_an_open_start_carries_the_embedding_through_the_layer_norm_as_it_is(conditioning_size: int) -> None:
    hypernetwork = opened(conditioning_size=conditioning_size)
    for stack in (hypernetwork.encoder, hypernetwork.decoder):
        assert isinstance(stack, StackHypernetwork)
        stack.projector_out.weight[:, 64:] = 0.0  # what the other units see of z, layer and position
        z, direction = torch.randn(512, 64), torch.randn(1, 64)
        there = stack.conditioning(torch.zeros(1, 64))
        for far in (0.25, 0.5):
            moved = stack.conditioning(far * direction) - there
            torch.testing.assert_close(moved / far, stack.conditioning(direction) - there, rtol=0.1, atol=0.05)
        shared = stack.conditioning(z)
        torch.testing.assert_close(shared, shared[:, :1, :1].expand_as(shared))  # the same in all places
        carried = (shared - there).square().sum(-1)[:, 0, 0] / z.square().sum(-1)
        assert 0.9 * (conditioning_size - 2) / 64 < float(carried.mean()) < 1.15
        assert float(shared[..., :2].abs().max()) == 0.0


def test_an_open_start_tells_layers_and_positions_apart_and_is_wide_where_norms_and_biases_are_made() -> None:
    hypernetwork = opened()
    made = hypernetwork(torch.randn(2, 64))
    assert float(made.encoder.beta[:, 0, 0].sub(made.encoder.beta[:, 1, 1]).std()) > 0.1
    for weights in (made.encoder, made.decoder):
        assert float(weights.gamma.std()) == pytest.approx(0.03 * 11, rel=0.4)
        assert float(weights.down.std()) == pytest.approx(0.01 * 11, rel=0.4)


def test_an_open_start_needs_a_projector_per_stack_that_is_wider_than_the_embedding() -> None:
    with pytest.raises(ValueError, match="width 64"):
        opened(projector_width=64)
    with pytest.raises(ValueError, match="hyperformer has no projector"):
        open_to_embeddings(PlainHyperFormer(d_model=16, encoder_layers=2, decoder_layers=1, bottleneck=4))
