"""Adapters hang on a stock T5 of any family, and leave no trace."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
import torch
from support.refusals import refused
from torch import Tensor, nn

from onboard.model.adapter import AdapterWeights, adapt, adapt_rows
from onboard.model.attach import attach, is_attached
from onboard.model.hypernetwork import Hypernetwork

Backbones = Callable[..., Any]
Hypernetworks = Callable[..., Hypernetwork]


def inputs() -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(3)  # of its own: two threads come here at once
    mask = torch.ones(4, 7, dtype=torch.long)
    mask[1, 5:] = 0
    return {
        "input_ids": torch.randint(2, 380, (4, 7), generator=generator),
        "attention_mask": mask,
        "labels": torch.randint(2, 380, (4, 3), generator=generator),
    }


def logits(backbone: Any) -> Tensor:
    with torch.no_grad():
        result: Tensor = backbone(**inputs()).logits
    return result


def adapter_by_hand(y: Tensor, w: AdapterWeights) -> Tensor:
    """Eq. 3 in its plainest words, for one adapter."""
    inner = nn.functional.gelu(y @ w.down.T + w.down_bias, approximate="tanh")
    outer = inner @ w.up.T + w.up_bias
    mean, variance = outer.mean(-1, keepdim=True), outer.var(-1, keepdim=True, unbiased=False)
    return y + (outer - mean) / (variance + 1e-5).sqrt() * w.gamma + w.beta


def test_the_adapter_is_equation_3_for_one_task_and_for_a_task_per_row() -> None:
    torch.manual_seed(0)
    h, b = 10, 3
    shapes = ((b, h), (b,), (h, b), (h,), (h,), (h,))
    several = AdapterWeights(*(torch.randn(2, *shape) for shape in shapes))
    one = [AdapterWeights(*(w[task] for w in several)) for task in range(2)]
    y, rows = torch.randn(3, 5, h), torch.tensor([1, 0, 1])
    torch.testing.assert_close(adapt(y, one[0]), adapter_by_hand(y, one[0]), atol=1e-5, rtol=0)
    mixed = adapt_rows(y, several, rows)
    for row, task in enumerate(rows.tolist()):
        torch.testing.assert_close(mixed[row], adapter_by_hand(y[row], one[task]), atol=1e-5, rtol=0)


def reference_logits(backbone: Any, hypernetwork: Hypernetwork, z: Tensor) -> Tensor:
    """The blocks computed by hand around the stock sub-layers, with the adapter before dropout and skip connection."""
    generated = hypernetwork(z)

    def stack(stack: Any, weights: AdapterWeights, ids: Tensor, source: Tensor | None, mask: Tensor | None) -> Tensor:
        attention = stack.block[0].layer[0].SelfAttention
        lowest = torch.finfo(torch.float32).min
        length = ids.shape[1]
        hidden = stack.embed_tokens(ids)
        bias = attention.compute_bias(length, length)
        if source is None:
            own = torch.zeros(1) if mask is None else (1.0 - mask[:, None, None].float()) * lowest
            cross = None
        else:
            own = torch.full((length, length), lowest).triu(1)
            cross = None if mask is None else (1.0 - mask[:, None, None].float()) * lowest
        for index, block in enumerate(stack.block):

            def adapted(y: Tensor, position: int, layer: int = index) -> Tensor:
                return adapter_by_hand(y, AdapterWeights(*(w[0, layer, position] for w in weights)))

            first = block.layer[0]
            y = first.SelfAttention(first.layer_norm(hidden), mask=own, position_bias=bias)[0]
            hidden = hidden + adapted(y, 1)
            if source is not None:
                second = block.layer[1]
                normed = second.layer_norm(hidden)
                hidden = hidden + second.EncDecAttention(normed, mask=cross, key_value_states=source)[0]
            last = block.layer[-1]
            hidden = hidden + adapted(last.DenseReluDense(last.layer_norm(hidden)), 0)
        result: Tensor = stack.final_layer_norm(hidden)
        return result

    with torch.no_grad():
        batch = inputs()
        states = stack(backbone.encoder, generated.encoder, batch["input_ids"], None, batch["attention_mask"])
        shifted = backbone._shift_right(batch["labels"])
        out = stack(backbone.decoder, generated.decoder, shifted, states, batch["attention_mask"])
        if getattr(backbone.config, "scale_decoder_outputs", False):
            out = out * backbone.config.d_model**-0.5
        result: Tensor = backbone.lm_head(out)
    return result


def test_every_family_computes_with_adapters_after_self_attention_and_feed_forward(
    backbone_of: Backbones, hypernetwork_for: Hypernetworks, family: str
) -> None:
    backbone = backbone_of(family)
    hypernetwork, z = hypernetwork_for(backbone), torch.randn(1, 12)
    bare = logits(backbone)
    attachment = attach(backbone)
    with torch.no_grad(), attachment.using(hypernetwork(z)):
        adapted = logits(backbone)
    attachment.detach()
    torch.testing.assert_close(adapted, reference_logits(backbone, hypernetwork, z), atol=1e-5, rtol=0)
    assert (adapted - bare).abs().max() > 1e-2


def test_detaching_leaves_the_backbone_bit_identical(
    backbone_of: Backbones, hypernetwork_for: Hypernetworks, family: str
) -> None:
    backbone = backbone_of(family)
    before, weights = logits(backbone), {n: p.clone() for n, p in backbone.named_parameters()}
    names = {name for name, _ in backbone.named_modules()}
    z = torch.randn(1, 12, requires_grad=True)
    attachment = attach(backbone)
    assert is_attached(backbone)
    with attachment.using(hypernetwork_for(backbone)(z)):
        backbone(**inputs()).loss.backward()
    attachment.detach()
    attachment.detach()
    assert not is_attached(backbone)
    assert not any(module._forward_hooks for module in backbone.modules())
    assert torch.equal(logits(backbone), before)
    assert {name for name, _ in backbone.named_modules()} == names
    assert all(torch.equal(p, weights[n]) for n, p in backbone.named_parameters())


def test_outside_using_the_hooks_do_nothing(backbone_of: Backbones, hypernetwork_for: Hypernetworks) -> None:
    backbone = backbone_of("t5")
    before = logits(backbone)
    attachment = attach(backbone)
    assert torch.equal(logits(backbone), before)
    generated = hypernetwork_for(backbone)(torch.randn(1, 12))
    with attachment.using(generated):
        assert not torch.equal(logits(backbone), before)
        with attachment.bare():
            assert torch.equal(logits(backbone), before)
        assert not torch.equal(logits(backbone), before)
    assert torch.equal(logits(backbone), before)
    with pytest.raises(RuntimeError), attachment.using(generated):
        raise RuntimeError
    assert torch.equal(logits(backbone), before)


def test_attaching_twice_is_an_error_until_detached(backbone_of: Backbones, hypernetwork_for: Hypernetworks) -> None:
    backbone = backbone_of("t5")
    attachment = attach(backbone)
    with refused("adapters-attached"):
        attach(backbone)
    attachment.detach()
    generated = hypernetwork_for(backbone)(torch.randn(1, 12))
    with refused("adapters-detached"), attachment.using(generated):
        pass
    attach(backbone)


def test_each_row_gets_what_a_batch_of_its_own_task_gets(
    backbone_of: Backbones, hypernetwork_for: Hypernetworks, family: str
) -> None:
    backbone = backbone_of(family)
    hypernetwork, z = hypernetwork_for(backbone), torch.randn(3, 12)
    attachment = attach(backbone)
    rows = torch.tensor([2, 0, 2, 1])
    with torch.no_grad():
        with attachment.using(hypernetwork(z), rows):
            mixed = logits(backbone)
        for row, task in enumerate(rows.tolist()):
            with attachment.using(hypernetwork(z[task : task + 1])):
                torch.testing.assert_close(mixed[row], logits(backbone)[row], atol=1e-5, rtol=0)


def test_gradients_of_a_mixed_batch_are_those_of_its_rows(
    backbone_of: Backbones, hypernetwork_for: Hypernetworks
) -> None:
    backbone = backbone_of("t5").requires_grad_(False)
    hypernetwork, attachment = hypernetwork_for(backbone), attach(backbone)
    rows, batch = torch.tensor([1, 0, 1, 1]), inputs()
    z = torch.randn(2, 12, requires_grad=True)
    with attachment.using(hypernetwork(z), rows):
        backbone(**batch).loss.backward()
    apart = torch.zeros(2, 12)
    for row, task in enumerate(rows.tolist()):
        own = z[task : task + 1].detach().requires_grad_(True)
        with attachment.using(hypernetwork(own)):
            backbone(**{name: value[row : row + 1] for name, value in batch.items()}).loss.backward()
        assert own.grad is not None
        apart[task] += own.grad[0] / len(rows)
    assert z.grad is not None
    torch.testing.assert_close(z.grad, apart, atol=1e-5, rtol=1e-4)


def test_adapters_that_do_not_fit_are_refused(backbone_of: Backbones, hypernetwork_for: Hypernetworks) -> None:
    backbone, other = backbone_of("t5"), backbone_of("byt5")
    attachment = attach(backbone)
    with (
        pytest.raises(ValueError, match="4 encoder layers"),
        attachment.using(hypernetwork_for(other)(torch.randn(1, 12))),
    ):
        pass
    with (
        pytest.raises(ValueError, match="each row"),
        attachment.using(hypernetwork_for(backbone)(torch.randn(2, 12))),
    ):
        pass
    with refused("not-an-encoder-decoder"):
        attach(nn.Linear(2, 2))


def test_two_threads_use_one_backbone_with_different_tasks(
    backbone_of: Backbones, hypernetwork_for: Hypernetworks
) -> None:
    backbone = backbone_of("t5")
    hypernetwork, attachment = hypernetwork_for(backbone), attach(backbone)
    tasks = [torch.randn(1, 12), torch.randn(1, 12)]
    expected, seen, entered = [], {}, threading.Barrier(2)
    for z in tasks:
        with torch.no_grad(), attachment.using(hypernetwork(z)):
            expected.append(logits(backbone))

    def serve(index: int) -> None:
        with torch.no_grad(), attachment.using(hypernetwork(tasks[index])):
            entered.wait(timeout=20)
            seen[index] = logits(backbone)

    threads = [threading.Thread(target=serve, args=(index,)) for index in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert torch.equal(seen[0], expected[0])
    assert torch.equal(seen[1], expected[1])
